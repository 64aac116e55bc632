"""The service as an ASGI app: Starlette, one list of calls, one gate in front of them."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from tightrope.errors import TightropeError
from tightrope.ops import openapi, page
from tightrope.ops.api import Health, Names
from tightrope.ops.auth import Gate
from tightrope.ops.calls import CALLS, DECODERS, Call
from tightrope.ops.limits import Limits
from tightrope.ops.metrics import CONTENT_TYPE, Metrics
from tightrope.ops.refusals import Refusal, answer, refusal_of
from tightrope.ops.served_learner import Keeper

#: Told when a learner could not be opened.
Failed = Callable[[Exception], None]


class Service:
    """Learners by name, and what is answered about all of them."""

    def __init__(self, keepers: Mapping[str, Keeper], limits: Limits, failed: Failed) -> None:
        self.keepers, self.limits, self.metrics, self._failed = keepers, limits, Metrics(), failed
        document = openapi.document(list(keepers))
        self._document, self._docs = msgspec.json.encode(document), openapi.page(document)

    @asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:
        """Open all learners while others are answered already; in the end, let go of them."""
        opening = asyncio.create_task(self._begin())
        try:
            yield
        finally:
            opening.cancel()
            await asyncio.gather(*(keeper.end() for keeper in self.keepers.values()))

    async def _begin(self) -> None:
        """One after another: modules are imported and kernels compiled on the way."""
        for keeper in self.keepers.values():
            try:
                await keeper.begin()
            except Exception as error:
                self._failed(error)

    def routes(self) -> list[Route]:
        """Every place, with all that can be done there."""
        calls: dict[str, dict[str, Call]] = {}
        for call in CALLS:
            calls.setdefault(call.path, {})[call.method] = call
        return [
            *(_route(path, self._about(there), *there) for path, there in calls.items()),
            _route("/learners", self._names),
            _route("/health", self._health),
            _route("/ready", self._ready),
            _route("/metrics", self._metrics),
            _route("/openapi.json", self._openapi),
            _route("/docs", self._page_of_calls),
            _route("/", self._live),
        ]

    def _about(self, calls: Mapping[str, Call]) -> Callable[[Request], Any]:
        async def about(request: Request) -> Response:
            call = calls["GET" if request.method == "HEAD" else request.method]
            self._refuse_large(request)
            body = None if call.takes is None else DECODERS[call.takes].decode(await self._body(request))
            keeper = self.keepers.get(request.path_params["name"])
            if keeper is None:
                raise Refusal("unknown-learner", f"these are served: {', '.join(self.keepers)}")
            if not keeper.ready:
                raise Refusal("not-ready", f"{keeper.name} is being opened, or let go of")
            found = call.answer(keeper, request, body)
            return _json(await found if inspect.isawaitable(found) else found)

        return about

    async def _body(self, request: Request) -> bytes:
        """All of it; refused as soon as it is too large, whatever its header says."""
        chunks, size = [], 0
        try:
            async with asyncio.timeout(self.limits.patience):
                async for chunk in request.stream():
                    size += len(chunk)
                    if size > self.limits.body:
                        raise self._too_large()
                    chunks.append(chunk)
        except TimeoutError:
            waited = f"not all of the body was here after {self.limits.patience:g} s"
            raise Refusal("too-slow", waited, Connection="close") from None
        return b"".join(chunks)

    def _refuse_large(self, request: Request) -> None:
        """By what its header says, also where no body is wanted."""
        length = request.headers.get("content-length", "0")
        if length.isdecimal() and int(length[:20]) > self.limits.body:
            raise self._too_large()

    def _too_large(self) -> Refusal:
        return Refusal("too-large", f"at most {self.limits.body} bytes are taken", Connection="close")

    async def _names(self, request: Request) -> Response:
        return _json(Names(list(self.keepers)))

    async def _health(self, request: Request) -> Response:
        return _json(Health("ok"))

    async def _ready(self, request: Request) -> Response:
        for keeper in self.keepers.values():
            if not keeper.ready:
                raise Refusal("not-ready", f"{keeper.name} is being opened, or let go of")
            if keeper.out_of_order:
                keeper.look_again()
                raise Refusal("storage", keeper.out_of_order)
        return _json(Health("ok"))

    async def _metrics(self, request: Request) -> Response:
        return Response(self.metrics.text(self.keepers.values()), headers=HEADERS, media_type=CONTENT_TYPE)

    async def _openapi(self, request: Request) -> Response:
        return Response(self._document, headers=HEADERS, media_type="application/json")

    async def _page_of_calls(self, request: Request) -> Response:
        return HTMLResponse(self._docs, headers=HEADERS)

    async def _live(self, request: Request) -> Response:
        return HTMLResponse(page.page(list(self.keepers)), headers=HEADERS)


HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


def _json(value: Any) -> Response:
    return Response(msgspec.json.encode(value), headers=HEADERS, media_type="application/json")


def _route(path: str, endpoint: Callable[[Request], Any], *methods: str) -> Route:
    async def placed(request: Request) -> Response:
        request.scope["place"] = path  # by which it is counted
        found: Response = await endpoint(request)
        return found

    return Route(path, placed, methods=methods or ["GET"])


async def _refused(request: Request, error: Exception) -> Response:
    """Whatever is raised on purpose, in words."""
    if isinstance(error, HTTPException):
        kind = {404: "not-found", 405: "wrong-method"}.get(error.status_code, "malformed")
        return answer(Refusal(kind, f"{request.method} {request.url.path}; see /docs", **(error.headers or {})))
    if isinstance(error, msgspec.DecodeError | UnicodeDecodeError):
        return answer(Refusal("malformed", str(error)))
    if isinstance(error, ClientDisconnect):
        return answer(Refusal("malformed", "the body ended too early"))
    return answer(refusal_of(error) or Refusal("failed", "see the log of the service"))


def make_app(
    keepers: Mapping[str, Keeper], *, token: str | None = None, limits: Limits | None = None, failed: Failed
) -> ASGIApp:
    """The whole service around these learners."""
    limits = limits or Limits()
    service = Service(keepers, limits, failed)
    raised = (HTTPException, msgspec.DecodeError, UnicodeDecodeError, ClientDisconnect, TightropeError, Refusal)
    app = Starlette(
        routes=service.routes(),
        exception_handlers=dict.fromkeys((*raised, Exception), _refused),
        lifespan=service.lifespan,
    )
    app.router.redirect_slashes = False
    return Gate(app, token, limits, service.metrics)
