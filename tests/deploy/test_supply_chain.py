"""What is installed or run from elsewhere is named by its content: hashes, commits and digests."""

import re

import pytest
import yaml
from packaging.requirements import Requirement

from tests.support.e2e import ROOT

DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def pins(name):
    """Requirements of a file, each with the hashes that follow it."""
    lines = (ROOT / name).read_text().replace("\\\n", " ").splitlines()
    for line in (line for line in lines if line and not line.lstrip().startswith("#")):
        pinned, *hashes = line.split("--hash=")
        yield Requirement(pinned.strip()), [each.strip() for each in hashes]


def test_the_image_installs_files_of_known_hashes_in_the_pinned_versions():
    pinned = {
        each.name.lower().replace("_", "-").replace(".", "-"): str(each.specifier)
        for each, _ in pins("constraints.txt")
    }
    locked = dict(pins("requirements.lock"))
    for requirement, hashes in locked.items():
        assert hashes, requirement
        assert all(DIGEST.fullmatch(each) for each in hashes), requirement
        assert pinned.get(requirement.name, str(requirement.specifier)) == str(requirement.specifier), (
            "run: make locked"
        )
    names = {requirement.name for requirement in locked}
    project = re.search(r"(?s)\ndependencies = \[(.*?)\n\]", (ROOT / "pyproject.toml").read_text())[1]
    wanted = {Requirement(each).name.lower().replace("_", "-") for each in re.findall(r'"([^"]+)"', project)}
    assert wanted <= names, "run: make locked"
    assert "--require-hashes" in (ROOT / "Dockerfile").read_text()


def test_actions_are_pinned_to_commits():
    used = re.findall(r"uses: (\S+)", (ROOT / "deploy/ci/github-actions.yml").read_text())
    assert used
    assert all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", each) for each in used)


@pytest.mark.parametrize("overlay", ["job", "nightly", "observe", "distributed"])
def test_manifests_name_the_image_by_a_digest_that_a_release_fills_in(overlay):
    (image,) = yaml.safe_load((ROOT / "deploy/kubernetes" / overlay / "kustomization.yaml").read_text())["images"]
    assert DIGEST.fullmatch(image["digest"])


def test_no_base_image_is_named_but_by_the_argument_that_a_release_pins():
    stages = re.findall(r"(?m)^FROM (\S+)", (ROOT / "Dockerfile").read_text())
    assert set(stages) == {"$BASE"}
