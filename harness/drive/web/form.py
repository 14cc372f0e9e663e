"""The form of Locust's web UI: who may send it, what it may set, and the files to choose from or to upload."""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
from gevent import get_hub

from harness.drive.session.coordinator import Coordinator
from harness.drive.web.guard import Guard, closed_to_others
from harness.model.errors import ConfigError
from harness.model.schedules import kinds
from harness.plan.form import Form
from harness.plan.form_files import FormFiles
from harness.plan.options import declared, formats_of_files, groups
from harness.targets.target import Platform

from locust.argument_parser import ui_extra_args_dict

_KEY = "pipeline-runs-form"
_PATH = "/pipeline-runs/form"
_SCRIPT = Path(__file__).with_name("form.js")
_ENTRY = '<script defer src=".%s.js" data-token="%s" data-form="%s"></script>'
# The fields of Locust's own form.
_LOCUSTS = ("user_count", "spawn_rate", "host", "run_time", "profile", "user_classes", "shape_class")
_LARGEST_UPLOAD = 256 * 2**20
_PART = 2**16


def form_of(platform: Platform, options: argparse.Namespace, folder: str) -> Form:
    """The form of a process that was started with `options`; it may use the files in `folder`.

    Raises:
        ConfigError: that is not a folder.
    """
    shown = {*_LOCUSTS, *ui_extra_args_dict()}
    return Form(shown, declared(platform), formats_of_files(platform), vars(options), FormFiles.of(folder))


def layout_of(platform: Platform) -> dict[str, Any]:
    """What `form.js` draws of the options, by the names of fields.

    These are groups, of which the first is always shown, defaults, lists, what each schedule reads, and the values that
    are known of fields that take others, too.
    """
    # Imported here: a test without a web UI does without.
    from harness.simulator.faults import FAULTS, HETIDA_FAULTS
    from harness.simulator.profile.file import built_in

    return {
        "groups": {title: [option.dest for option in options] for title, options in groups(platform).items()},
        "defaults": {option.dest: option.default for option in declared(platform)},
        "lists": [option.dest for option in declared(platform) if option.repeatable],
        "suggestions": {
            "fault": [*FAULTS, *HETIDA_FAULTS],
            "simulate": [*built_in()],
            "param_mode": ["columns", "json:"],
        },
        "schedules": {name: [option.dest for option in kind.OPTIONS] for name, kind in kinds().items()},
    }


def add(web_ui: Any, form: Form, layout: dict[str, Any], tests: Coordinator, guard: Guard) -> None:
    """Guard all of Locust's pages, draw its form by `layout`, and check what it sends before Locust reads it."""
    _check_requests(web_ui.app, form, guard)
    _draw(web_ui.app, layout, tests, guard)
    _tell_refusals(web_ui.app, form, tests)
    _serve_files(web_ui, form)
    web_ui.app.wsgi_app = closed_to_others(web_ui.app.wsgi_app)


def _check_requests(app: Any, form: Form, guard: Guard) -> None:
    from flask import request

    @app.before_request  # type: ignore[untyped-decorator]  # Flask's app comes untyped through Locust
    def check() -> Any:
        # Locustfiles may add pages of their own, such as a login, whose forms hold no token of ours.
        needs_token = request.blueprint in {"locust", _KEY}
        if why := guard.refusal(request.method, dict(request.headers), needs_token=needs_token):
            return _refused(why, 403)
        if request.endpoint == "locust.swarm":
            try:
                accepted = form.accept(request.form)
            except ConfigError as error:
                return _refused(form.in_words(str(error)), 400)
            fields = [(name, accepted.get(name, text)) for name, text in request.form.items(multi=True)]
            request.form = type(request.form)(field for field in fields if field[0] in accepted)
        return None


def _draw(app: Any, layout: dict[str, Any], tests: Coordinator, guard: Guard) -> None:
    from flask import request
    from markupsafe import escape

    @app.after_request  # type: ignore[untyped-decorator]  # as above
    def extend(response: Any) -> Any:
        if request.endpoint == "locust.index" and response.status_code == 200:
            drawn = orjson.dumps({**layout, "simulated": tests.simulated}).decode()
            entry = _ENTRY % (_PATH, guard.token, escape(drawn))
            response.set_data(response.get_data(as_text=True).replace("</body>", f"{entry}</body>"))
            response.headers["Cache-Control"] = "no-store"
        return response


def _tell_refusals(app: Any, form: Form, tests: Coordinator) -> None:
    """Let START wait until the test has started: Locust answers before."""
    from flask import jsonify

    swarm = app.view_functions["locust.swarm"]

    def start() -> Any:
        before = tests.latest
        answer = app.make_response(swarm())
        if (answer.get_json(silent=True) or {}).get("success") and (why := tests.refusal_after(before)):
            refused, status = _refused(form.in_words(why.removeprefix("error: ")), 400)
            return jsonify(refused), status
        return answer

    app.view_functions["locust.swarm"] = start


def _serve_files(web_ui: Any, form: Form) -> None:
    """The form's script, the files to choose from, and uploads."""
    from flask import Blueprint, jsonify, request, send_file

    pages = Blueprint(_KEY, __name__)

    @pages.route(f"{_PATH}.js")
    def script() -> Any:
        return send_file(_SCRIPT)

    @pages.route(_PATH)
    @web_ui.auth_required_if_enabled  # type: ignore[untyped-decorator]  # as above
    def choices() -> Any:
        # In a thread: a test may be under way, whose arrivals a slow disk must not delay.
        return jsonify(get_hub().threadpool.apply(form.choices)), 200, {"Cache-Control": "no-store"}

    @pages.route(f"{_PATH}/<name>", methods=["POST"])
    @web_ui.auth_required_if_enabled  # type: ignore[untyped-decorator]  # as above
    def upload(name: str) -> Any:
        if request.content_length is None or request.content_length > _LARGEST_UPLOAD:
            return _refused(f"a file can't be larger than {_LARGEST_UPLOAD // 2**20} MiB", 413)
        try:
            return jsonify({"success": True, "name": form.upload(name, _parts(request.stream))})
        except ConfigError as error:
            return _refused(str(error), 400)

    web_ui.app.register_blueprint(pages, url_prefix=web_ui.environment.parsed_options.web_base_path or None)


def _refused(why: str, status: int) -> tuple[dict[str, object], int]:
    """As Locust's page understands it."""
    return {"success": False, "message": why}, status


def _parts(stream: Any) -> Iterator[bytes]:
    while part := stream.read(_PART):
        yield part
