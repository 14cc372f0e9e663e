"""The KFP API as an exchange whose answers a test decides."""

import json
from urllib.parse import parse_qs, urlsplit

from harness.model.http import HttpAnswer

IR = {
    "pipelineInfo": {"name": "nightly"},
    "schemaVersion": "2.1.0",
    "root": {
        "dag": {"tasks": {"a": {"cachingOptions": {"enableCache": True}}, "loop": {"cachingOptions": {}}}},
        "inputDefinitions": {
            "parameters": {
                "url": {"parameterType": "STRING"},
                "rows": {"parameterType": "NUMBER_INTEGER", "defaultValue": 7.0},
                "note": {"parameterType": "STRING", "isOptional": True},
            }
        },
    },
    "components": {"comp-loop": {"dag": {"tasks": {"b": {"cachingOptions": {"enableCache": True}}}}}},
}

# What the target is asked to do, and what the command line says of it, where a test gives nothing else.
OPTIONS = {"experiment": "e", "namespace": "", "service_account": "", "pipeline_id": "", "version_id": ""}
TEXTS = {
    "pipeline": "",
    "pipeline-id": "",
    "version-id": "",
    "experiment": "e",
    "namespace": "",
    "service-account": "",
    "prepare": "",
    "caching": "off",
    "tenant-namespace": "",
}


class Server:
    """Answers by (method, path) and keeps what it was asked."""

    def __init__(self, **answers):
        self.answers = {tuple(key.split(" ", 1)): value for key, value in answers.items()}
        self.asked = []

    def __call__(self, request):
        url = urlsplit(request.path)
        self.asked.append((request.method, url.path.removeprefix("/apis/v2beta1"), parse_qs(url.query), request.body))
        answer = self.answers.get((request.method, self.asked[-1][1]), {})
        if isinstance(answer, list):
            answer = answer.pop(0)
        if isinstance(answer, HttpAnswer):
            return answer
        return HttpAnswer(200, json.dumps(answer).encode(), {"content-type": "application/json"})

    def requests(self, method):
        return [(path, query) for asked, path, query, _ in self.asked if asked == method]


VERSION = {"pipeline_version_id": "v1", "pipeline_spec": IR}


def ready(**more):
    return Server(
        **{
            "GET /experiments": {"experiments": [{"experiment_id": "e1"}]},
            "GET /pipelines": {"pipelines": [{"pipeline_id": "p1"}]},
            "GET /pipelines/p1/versions": {"pipeline_versions": [VERSION]},
            "GET /pipelines/p1/versions/v1": VERSION,
            "POST /experiments": {"experiment_id": "e1"},
            "POST /pipelines/upload": {"pipeline_id": "p1"},
        }
        | more
    )
