"""``pipeswarm simulate corpus --served``: every document of a folder loaded with Locust, as its user would."""

import json
import os
import subprocess

import yaml

from tests.support.e2e import BIN, QUICK
from tests.support.hostile import API, PIPELINE, POD, TEMPLATE


def test_every_document_is_loaded_on_a_served_platform_whatever_the_settings_around_it_say(tmp_path):
    calls = [{"name": "m", "steps": [[{"name": "s", "templateRef": {"name": "shared", "template": "w"}}]]}]
    spec = {"entrypoint": "m", "templates": calls}
    ran = {**API, "kind": "WorkflowTemplate", "metadata": {"name": "ran"}, "spec": spec}
    refused = {
        **API,
        "kind": "Workflow",
        "metadata": {"name": "r"},
        "spec": {"entrypoint": "w", "un": 1, "templates": [POD]},
    }
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "templates.yaml").write_text(
        yaml.safe_dump_all(
            [
                ran,
                {
                    **TEMPLATE,
                    "spec": {"templates": [POD]},
                },
            ]
        )
    )
    (tmp_path / "a" / "refused.json").write_text(json.dumps(refused))
    (tmp_path / "a" / "pipeline.yaml").write_text(yaml.safe_dump(PIPELINE))
    (tmp_path / "locust.conf").write_text("host = http://127.0.0.1:9\n")
    settings = {"ARGO_SERVER": "127.0.0.1:9", "KF_PIPELINES_ENDPOINT": "http://127.0.0.1:9", "LOCUST_HOST": "http://h"}
    done = subprocess.run(
        [BIN / "pipeswarm", "simulate", "corpus", "a", "--served", "--profile", QUICK, "--json"],
        cwd=tmp_path, env={**os.environ, **settings}, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr + done.stdout
    found = {each["file"]: each for each in json.loads(done.stdout)}
    assert {name: (each["run"], each["pods"]) for name, each in found.items()} == {
        "templates.yaml": ("ran", 1), "refused.json": ("refused", 0), "pipeline.yaml": ("ran", 3),
    }  # fmt: skip
    assert "un" in found["refused.json"]["note"]
    assert found["pipeline.yaml"]["seconds"] > 0
    assert sorted(done.stderr.split()) == sorted(
        ["templates.yaml:", "ran", "refused.json:", "refused", "pipeline.yaml:", "ran"]
    )
