"""What to do when a platform, or a gateway before it, wants to know who asks."""

import re

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
