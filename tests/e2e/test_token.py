"""The bearer token is sent only to the origin it was given for, whatever host is entered in the web form."""

import pytest

from tests.support.e2e import ROOT, wait_for
from tests.support.web_ui import listener, start_web_ui

__all__ = ["listener"]

SECRET = "s3cret-t0ken"


@pytest.mark.parametrize("given", ["option", "file", "nothing"])
def test_another_host_from_the_web_form_gets_no_token_and_the_page_warns(locust, listener, given):
    (own, at_own), (foreign, at_foreign) = listener(), listener()
    (locust.place / "token").write_text(SECRET)
    credentials = ["--token-file", str(locust.place / "token")] if given == "file" else []
    secrets = {} if given == "file" else {"PIPESWARM_TOKEN": SECRET}
    host = [] if given == "nothing" else ["--host", own]
    ui = start_web_ui(locust, "--pipeline", str(ROOT / "harness/targets/training.yaml"), *host, *credentials, **secrets)
    assert ui.start(host=foreign)[0] == 400, "it answers nothing but errors"
    wait_for(lambda: at_foreign)
    state = wait_for(lambda: (told := ui.state())["verdict"] and told)
    assert set(at_foreign) == {""}
    assert "gets no credentials" in state["warning"]
    assert foreign in state["warning"]
    if given != "nothing":
        assert ui.start(host=own)[0] == 400
        wait_for(lambda: at_own)
        assert set(at_own) == {f"Bearer {SECRET}"}, "the host given on the command line gets it"
        assert ui.state()["warning"] == ""
