"""When the official client asks an exec plugin of the kubeconfig for a newer token, and what it does not ask.

By itself it asks before every request once a token has less than five minutes left, so all the time for tokens that
never have more. Providers in the kubeconfig (``auth-provider``) it would ask without limit and without checking their
certificate, and it would not keep the refresh token that they give in exchange, so that the user's kubectl had none.
"""

import threading
import time
from collections.abc import Callable
from typing import Any

_MARGIN_S, _SHARE = 300.0, 0.2  # of a token's life: what is left when it is renewed
_RETRY_S = 5.0
_REFRESHES = ("_refresh_oidc", "_refresh_gcp_token", "_refresh_azure_token")  # of the client's loader


class Renewal:
    """Replaces the client's hook: renews a token in the last fifth of its life, at most five minutes before its end.

    Attributes:
        expires_s: when the present token expires, seconds since 1970; None where the plugin does not say so.
    """

    def __init__(self, loader: Any, refresh: Callable[[Any], None], *, now: Callable[[], float] = time.time) -> None:
        self._loader = loader
        self._refresh = refresh
        self._now = now
        self._lock = threading.Lock()
        self.expires_s: float | None = None
        self._due_s = self._next_s()

    def __call__(self, configuration: Any) -> None:
        """Have a valid token in `configuration`; one thread asks for it, and the others wait."""
        with self._lock:
            if self._now() >= self._due_s:
                self._refresh(configuration)
                self._due_s = self._next_s()

    def _next_s(self) -> float:
        expiry = getattr(self._loader, "expiry", None)
        if expiry is None:
            return float("inf")
        self.expires_s = expiry.timestamp()
        now_s = self._now()
        left_s = self.expires_s - now_s
        # A plugin that fails, or knows nothing newer, is not asked by every request either.
        return max(self.expires_s - min(_MARGIN_S, left_s * _SHARE), now_s + min(_RETRY_S, max(left_s, 1.0)))


def use(loader: Any, configuration: Any) -> None:
    """Load the kubeconfig's access into the client's configuration, which then renews a token by its own expiry.

    Raises:
        ValueError: a token of a provider has expired.
    """
    for name in _REFRESHES:
        setattr(loader, name, _expired)
    loader.load_and_set(configuration)
    if configuration.refresh_api_key_hook is not None:
        configuration.refresh_api_key_hook = Renewal(loader, configuration.refresh_api_key_hook)


def _expired(*_: object) -> None:
    raise ValueError("the token of its auth-provider has expired; any kubectl command renews it, an exec plugin always")


def expires_s(configuration: Any) -> float | None:
    """When the token in a configuration expires, seconds since 1970; None where that is not known."""
    hook = configuration.refresh_api_key_hook
    return hook.expires_s if isinstance(hook, Renewal) else None
