"""Access control of the review page: local requests with the token, and no cross-origin requests."""

from __future__ import annotations

import secrets
from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:;"
    " base-uri 'none'; form-action 'none'; frame-ancestors "
)
PREVIEW = "/reconcile/preview"  # the only page that allowed origins may embed in a frame
SECURE = {
    "content-security-policy": f"{POLICY}'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
LARGEST_BODY = 4_000_000  # most bytes of a request body


class Guard:
    """Middleware that rejects requests from other pages, and removes the token from the path.

    token
        Secret that must be the first part of every path.
    hosts
        Allowed values of the Host header, which prevents DNS rebinding.
    friends
        Origins that may send requests below ``/reconcile``.
    """

    def __init__(
        self, app: ASGIApp, token: str, hosts: Collection[str], friends: Collection[str] = ()
    ) -> None:
        self.app, self.token = app, token
        self.hosts, self.friends = frozenset(hosts), frozenset(friends)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward a request to the application, or reject it."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await PlainTextResponse(refusal, 403, headers=SECURE)(scope, receive, send)
            return
        origin = headers.get("origin", "")
        path = scope["path"][len(self.token) + 1 :]

        async def send_secured(message: Message) -> None:
            if message["type"] == "http.response.start":
                added = dict(SECURE)
                if origin in self.friends:
                    added |= {"access-control-allow-origin": origin, "vary": "Origin"}
                    added["cross-origin-resource-policy"] = "cross-origin"
                if path == PREVIEW and self.friends:
                    added["content-security-policy"] = POLICY + " ".join(sorted(self.friends))
                message["headers"] += [(name.encode(), value.encode()) for name, value in added.items()]
            await send(message)

        await self.app({**scope, "path": path, "raw_path": path.encode()}, receive, send_secured)

    def _refusal(self, scope: Scope, headers: Headers) -> str | None:
        """Return why a request is rejected; None if it is allowed."""
        if headers.get("host", "") not in self.hosts:
            return "this page is for the machine that it runs on: open it at 127.0.0.1."
        _, token, *rest = [*scope["path"].split("/"), ""][:3]
        if not rest or not secrets.compare_digest(token.encode(), self.token.encode()):
            return "the address lacks the token: open the one that `factorwise review` printed."
        below = scope["path"][len(token) + 1 :]
        if ".." in below.split("/") or "\\" in below:
            return "there is no such page."
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length) > LARGEST_BODY:
            return "the request is too large."
        reconciling = below == "/reconcile" or below.startswith("/reconcile/")
        origin = headers.get("origin")
        own = {f"http://{host}" for host in self.hosts}
        if origin is not None and origin not in own and not (reconciling and origin in self.friends):
            return "requests from other pages are refused."
        site = headers.get("sec-fetch-site")
        if site not in (None, "same-origin", "none") and not reconciling:
            return "requests from other pages are refused."
        if scope["method"] == "POST" and not reconciling:
            kind = headers.get("content-type", "").split(";")[0]
            if kind != "application/json":
                return "only JSON is taken."
        return None
