"""What a release attaches: make release DIGEST=sha256:… of the pushed image.

The wheel, the hashes of all that an installation downloads and of the wheel itself, the bill of materials, and the
manifests, which name the image by its digest.
"""

import hashlib
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.support.licences import ROOT, project
from tests.support.sbom import document

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_PLACEHOLDER = f"sha256:{'0' * 64}"


def release(out: Path, digest: str) -> None:
    """Write everything into `out`, which is made anew."""
    if not _DIGEST.fullmatch(digest) or digest == _PLACEHOLDER:
        sys.exit("give the digest of the pushed image: make release DIGEST=sha256:…")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", out.resolve()], cwd=ROOT, check=True
    )
    (wheel,) = out.glob("*.whl")
    own = f"pipeswarm=={project()['version']} \\\n    --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n"
    (out / "constraints.txt").write_text((ROOT / "constraints.txt").read_text() + own)
    (out / "sbom.json").write_text(json.dumps(document(), indent=1) + "\n", encoding="utf-8")
    shutil.copytree(ROOT / "deploy/kubernetes", out / "kubernetes")
    for manifest in (out / "kubernetes").rglob("*.yaml"):
        manifest.write_text(manifest.read_text().replace(_PLACEHOLDER, digest))


if __name__ == "__main__":
    release(Path(sys.argv[1]), "".join(sys.argv[2:]))
