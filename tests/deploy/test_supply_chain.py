"""What is installed or run from elsewhere is named by its content: hashes, commits and digests."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from itertools import chain

import pytest
import yaml
from packaging.requirements import Requirement

from tests.support.e2e import ROOT
from tests.support.licences import plain
from tests.support.release import release

DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
OF_IMAGE = f"sha256:{'ab' * 32}"


def pins():
    """The packages of constraints.txt, each with the hashes that follow it."""
    lines = (ROOT / "constraints.txt").read_text().replace("\\\n", " ").splitlines()
    for line in (line for line in lines if line and not line.lstrip().startswith("#")):
        pinned, *hashes = line.split("--hash=")
        yield Requirement(pinned.strip()), [each.strip() for each in hashes]


def test_every_package_is_pinned_with_its_hashes():
    constraints = dict(pins())
    for requirement, hashes in constraints.items():
        assert [each.operator for each in requirement.specifier] == ["=="], requirement
        assert hashes, requirement
        assert all(DIGEST.fullmatch(each) for each in hashes), requirement
    names = {requirement.name for requirement in constraints}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = [*project["dependencies"], *chain.from_iterable(project["optional-dependencies"].values())]
    wanted = {plain(Requirement(each).name) for each in asked} - {"pipeswarm"}
    assert {"locust", "hatchling", "mutmut"} <= wanted
    assert wanted <= names, "run: make locked"


def forged(folder, name):
    """A wheel of the pinned version of a package with other content."""
    (version,) = next(requirement.specifier for requirement, _ in pins() if requirement.name == name)
    wheel = folder / f"{name}-{version.version}-py3-none-any.whl"
    about = f"{name}-{version.version}.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version.version}\n")
        archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{about}/RECORD", "")
    return folder


def test_a_forged_file_is_not_installed(tmp_path):
    """By pip as the documented commands run it: the first file of an installation, and any later one."""
    offline = os.environ | {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path), "PIP_CONFIG_FILE": os.devnull}
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "new"], check=True)
    forged(tmp_path, "pip")
    by_script = [tmp_path / "new/bin/python", ROOT / "deploy/install.py"]
    by_pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-c",
        ROOT / "constraints.txt",
        "--target",
        tmp_path / "t",
        "iniconfig",
    ]
    forged(tmp_path, "iniconfig")
    for command in (by_script, by_pip):
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=offline)
        assert done.returncode
        assert "DO NOT MATCH THE HASHES" in done.stderr
    assert not (tmp_path / "t").exists()


def test_the_image_is_built_from_what_it_copies_by_the_installer(tmp_path):
    first = (ROOT / "Dockerfile").read_text().split("\nFROM ")[1]
    assert re.search(r"RUN .*bin/python deploy/install\.py$", first, re.MULTILINE)
    for line in re.findall(r"(?m)^COPY (.+)", first):
        *sources, to = line.split()
        for source in (ROOT / each for each in sources):
            if source.is_dir():
                shutil.copytree(source, tmp_path / to)
            else:
                (tmp_path / to).parent.mkdir(exist_ok=True)
                shutil.copy(source, tmp_path / (to if to != "./" else source.name))
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path / "dist"]
    subprocess.run(build, cwd=tmp_path, check=True, capture_output=True)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    assert {"harness/cli/__init__.py", "pipeswarm/locustfiles/kfp.py"} <= set(zipfile.ZipFile(wheel).namelist())


def test_ci_installs_by_hashes_alone():
    for name in ("github-actions.yml", "gitlab-ci.yml"):
        installs = re.findall(r"pip install (.*)", (ROOT / "deploy/ci" / name).read_text())
        assert len(installs) == 2
        assert all(re.match(r"--require-hashes -r pip\.txt|-c constraints\.txt pipeswarm", each) for each in installs)


def test_actions_are_pinned_to_commits():
    used = re.findall(r"uses: (\S+)", (ROOT / "deploy/ci/github-actions.yml").read_text())
    assert used
    assert all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", each) for each in used)


def test_a_release_has_its_hashes_its_bill_of_materials_and_manifests_with_its_digest(tmp_path):
    release(tmp_path / "out", OF_IMAGE)
    (wheel,) = (tmp_path / "out").glob("pipeswarm-*.whl")
    hashed = subprocess.run(["sha256sum", wheel], capture_output=True, text=True, check=True).stdout.split()[0]
    constraints = (tmp_path / "out/constraints.txt").read_text()
    assert re.search(rf"(?m)^pipeswarm==\S+ \\\n    --hash=sha256:{hashed}\n\Z", constraints)
    assert json.loads((tmp_path / "out/sbom.json").read_text())["components"]
    texts = {each: each.read_text() for each in (tmp_path / "out/kubernetes").rglob("*.yaml")}
    assert not any("0" * 64 in text for text in texts.values())
    overlays = [each for each in texts if each.name == "kustomization.yaml" and each.parent.name != "base"]
    for kustomization in overlays:
        (image,) = yaml.safe_load(texts[kustomization]).get("images", [{}])
        operated = yaml.safe_load(texts.get(kustomization.with_name("test.yaml"), "spec: {}"))["spec"]
        assert OF_IMAGE in {image.get("digest"), operated.get("image", "").rpartition("@")[2]}, kustomization
    assert len(overlays) == 5


@pytest.mark.parametrize("digest", ["", "latest", f"sha256:{'0' * 64}", f"{OF_IMAGE}\n- x"])
def test_a_release_without_a_digest_is_refused(digest, tmp_path):
    with pytest.raises(SystemExit, match="give the digest"):
        release(tmp_path / "out", digest)
    assert not (tmp_path / "out").exists()


def test_no_base_image_is_named_but_by_the_argument_that_a_release_pins():
    stages = re.findall(r"(?m)^FROM (\S+)", (ROOT / "Dockerfile").read_text())
    assert set(stages) == {"$BASE"}
