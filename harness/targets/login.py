"""What to do when a platform, or a gateway before it, wants to know who asks."""

import re

from harness.targets import kube_service

_CERTIFICATE = re.compile(r"no required ssl certificate|client certificate", re.IGNORECASE)
_PLAIN_HTTP = re.compile(r"plain http request|http request to an https server", re.IGNORECASE)
_USER_HEADER = re.compile(r"user identity header|kubeflow-userid", re.IGNORECASE)
_USER_HINT = (
    "name the user as the gateway would: --header 'kubeflow-userid: me@example.org'; from outside the cluster, give "
    "the session of a browser instead (--cookie-file)"
)
REDIRECT_HINT = (
    "if that is a login page, give a bearer token (--token-file) or the cookies of a browser that is logged in "
    "(--cookie-file); otherwise it may be the right --host"
)


def refusal_hint(said: str, variables: str = "PIPESWARM_TOKEN") -> str:
    """What to do after a 401 or 403 with the text `said`; `variables` are those that a token is read from."""
    if _USER_HEADER.search(said):
        return _USER_HINT
    return (
        f"give a bearer token (--token-file, or {variables} in the environment), or the cookies of a browser that is "
        "logged in (--cookie-file)"
    )


def hint_for(said: str, otherwise: str) -> str:
    """What to do after an answer that is no success, by its text."""
    if _CERTIFICATE.search(said):
        return "give the client's certificate that the server asks for: --client-certificate, --client-key"
    if _PLAIN_HTTP.search(said):
        return "the server speaks TLS there: give --host https://…"
    return kube_service.hint_for(said, otherwise)
