"""An API server as far as its service proxy: what it passes on is answered by an exchange."""

from collections.abc import Iterator
from contextlib import contextmanager

from harness.model.http import Exchange, HttpAnswer, HttpRequest
from harness.plan.kubeconfig import Access
from tests.support.servers import serving

TOKEN = "of-the-kubeconfig"


@contextmanager
def service_proxy(proxied: str, exchange: Exchange) -> Iterator[Access]:
    """Serve `exchange` below the path `proxied`, to requests with the right token; everything else is not found."""

    def answer(request: HttpRequest) -> HttpAnswer:
        if not request.path.startswith(proxied) or request.headers["Authorization"] != f"Bearer {TOKEN}":
            return HttpAnswer(404, b"404 page not found")
        return exchange(HttpRequest(request.method, request.path.removeprefix(proxied), request.body))

    with serving(answer) as url:
        yield Access(url, "", TOKEN, "", "", "")
