"""Builds the programs of a control plane and of Argo with Go, from the modules as the Go module proxy serves them."""

import json
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

from tests.support.e2e import ROOT

CACHE = ROOT / "build/real-parts"
_KUBERNETES, _ARGO = ("k8s.io/kubernetes", "v1.36.3"), ("github.com/argoproj/argo-workflows/v4", "v4.0.5")
PROGRAMS = {
    "kube-apiserver": _KUBERNETES,
    "kube-controller-manager": _KUBERNETES,
    "kube-scheduler": _KUBERNETES,
    "workflow-controller": _ARGO,
}


def build_missing() -> None:
    """Build what neither `KUBEBUILDER_ASSETS` nor the cache holds, and let `KUBEBUILDER_ASSETS` name the cache then."""
    named = Path(os.environ.get("KUBEBUILDER_ASSETS") or CACHE)
    missing = [each for each in PROGRAMS if not (named / each).exists() and not (CACHE / each).exists()]
    if all((named / each).exists() for each in PROGRAMS):
        return
    if missing and shutil.which("go") is None:
        print(
            f"missing: {', '.join(missing)}; install Go 1.26 or later, or set KUBEBUILDER_ASSETS to a folder with them"
        )
        return
    CACHE.mkdir(parents=True, exist_ok=True)
    for each, module in PROGRAMS.items():
        if each in missing:
            _build(each, *module)
        elif not (CACHE / each).exists():
            (CACHE / each).symlink_to((named / each).resolve())
    os.environ["KUBEBUILDER_ASSETS"] = str(CACHE)


def _build(name: str, module: str, version: str) -> None:
    print(f"building {name} {version} from {module}: minutes, once", flush=True)
    began = time.monotonic()
    place = CACHE / "modules" / name
    place.mkdir(parents=True, exist_ok=True)
    found = json.loads(_go(place, "mod", "download", "-json", f"{module}@{version}"))
    # A module that needs it: Kubernetes' own go.mod leads to folders that its module lacks.
    staged = re.findall(r"^\t(\S+) => \./staging/", Path(found["GoMod"]).read_text(), re.MULTILINE)
    replaced = "".join(f"replace {each} => {each} v0{version.removeprefix('v1')}\n" for each in staged)
    (place / "go.mod").write_text(f"module built\n\ngo 1.26.0\n\nrequire {module} {version}\n\n{replaced}")
    flags = f"-s -w -X k8s.io/component-base/version.gitVersion={version}"
    _go(place, "build", "-mod=mod", "-trimpath", "-ldflags", flags, "-o", str(CACHE / name), f"{module}/cmd/{name}")
    print(f"  {time.monotonic() - began:.0f} s")


def _go(place: Path, *command: str) -> str:
    done = subprocess.run(
        ["go", *command], cwd=place, capture_output=True, text=True, check=False, env={**os.environ, "CGO_ENABLED": "0"}
    )
    if done.returncode:
        raise SystemExit(f"go {' '.join(command)} failed:\n{done.stderr[-2000:] or done.stdout[-2000:]}")
    return done.stdout
