"""The bill of materials names every package of a user's installation."""

from tests.support.licences import installed, project
from tests.support.sbom import document


def test_it_lists_the_installed_packages_and_how_they_depend_on_each_other():
    written = document()
    listed = {each["name"]: each for each in written["components"]}
    assert listed.keys() == installed()
    assert "mypy" not in listed, "developers' packages are no part of an installation"
    assert all(each["version"] and each["licenses"][0]["license"]["name"] for each in listed.values())
    needs = {each["ref"]: set(each["dependsOn"]) for each in written["dependencies"]}
    own = written["metadata"]["component"]
    assert own["version"] == project()["version"]
    assert len(needs[own["bom-ref"]] & {listed["locust"]["bom-ref"], listed["scipy"]["bom-ref"]}) == 2
    reached, pending = set(), [own["bom-ref"]]
    while pending:
        if (ref := pending.pop()) not in reached:
            reached.add(ref)
            pending += needs[ref]
    assert reached == needs.keys(), "every package is there for a reason"
