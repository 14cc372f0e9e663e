"""When the official client asks an exec plugin of the kubeconfig for a newer token.

By itself it asks before every request once a token has less than five minutes left, so all the time for tokens that
never have more.
"""

import threading
import time
from collections.abc import Callable
from typing import Any

_MARGIN_S, _SHARE = 300.0, 0.2  # of a token's life: what is left when it is renewed
_RETRY_S = 5.0


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
    """Load the kubeconfig's access into the client's configuration, which then renews a token by its own expiry."""
    loader.load_and_set(configuration)
    if configuration.refresh_api_key_hook is not None:
        configuration.refresh_api_key_hook = Renewal(loader, configuration.refresh_api_key_hook)


def expires_s(configuration: Any) -> float | None:
    """When the token in a configuration expires, seconds since 1970; None where that is not known."""
    hook = configuration.refresh_api_key_hook
    return hook.expires_s if isinstance(hook, Renewal) else None
