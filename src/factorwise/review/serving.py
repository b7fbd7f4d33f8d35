"""Serve the review page on a loopback port, with a new token for each start."""

from __future__ import annotations

import secrets
import socket
import threading
from collections.abc import Sequence

import uvicorn

from factorwise.apps.resolution.curation import Review
from factorwise.errors import FactorwiseError
from factorwise.review.application import make_application
from factorwise.review.guarding import Guard

LOOPBACK = "127.0.0.1"
OPENREFINE = ("http://127.0.0.1:3333", "http://localhost:3333")


class Server:
    """A server of a review on a port of the loopback interface.

    port
        The port; 0 to choose a free one.
    friends
        Origins whose pages may use the reconciliation service.

    Attributes
    ----------
    address
        URL of the page, including the token.
    """

    def __init__(self, review: Review, *, port: int = 0, friends: Sequence[str] = OPENREFINE) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((LOOPBACK, port))
            self._socket.listen()  # requests wait until the server runs instead of being refused
        except OSError as error:
            self._socket.close()
            raise FactorwiseError(
                f"port {port} cannot be used ({error.strerror}): choose another."
            ) from error
        chosen = self._socket.getsockname()[1]
        self.token = secrets.token_urlsafe(24)
        self.address = f"http://{LOOPBACK}:{chosen}/{self.token}/"
        hosts = (f"{LOOPBACK}:{chosen}", f"localhost:{chosen}")
        guarded = Guard(make_application(review, self.address), self.token, hosts, friends)
        settings = uvicorn.Config(
            guarded, log_level="warning", access_log=False, server_header=False, lifespan="off"
        )
        self._server = uvicorn.Server(settings)

    def run(self) -> None:
        """Serve until Ctrl-C."""
        self._server.run([self._socket])

    def start(self) -> threading.Thread:
        """Serve in a new thread, and return it as soon as the server accepts requests."""
        thread = threading.Thread(target=self._server.run, args=([self._socket],), daemon=True)
        thread.start()
        waiting = threading.Event()
        while not self._server.started and thread.is_alive():
            waiting.wait(0.01)
        return thread

    def stop(self) -> None:
        """Stop serving."""
        self._server.should_exit = True
