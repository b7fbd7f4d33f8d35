"""The JSON API of the review page: questions, answers, entities and history."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from factorwise.apps.resolution.curation import Question, Review
from factorwise.apps.resolution.curation.estimates import Quality
from factorwise.errors import FactorwiseError, InvalidArgumentError
from factorwise.review.reconciliation import reconciliation_routes

ASSETS = {
    "": ("review.html", "text/html"),
    "review.js": ("review.js", "text/javascript"),
    "review.css": ("review.css", "text/css"),
}
MOST_TOLD = 6  # most changed entities that the response to an answer lists
LONGEST = 1_000  # most characters of a text parameter


def make_application(review: Review, address: str) -> Starlette:
    """Return the web application of a review, without access control (see `Guard`).

    address
        URL at which it will be served, with the token and a trailing slash.
    """
    api = _Api(review)
    routes = [
        *(Route(f"/{path}", _asset(*asset)) for path, asset in ASSETS.items()),
        Route("/api/question", _reading(api.question)),
        Route("/api/quality", _reading(api.quality)),
        Route("/api/entities", _reading(api.entities)),
        Route("/api/entity", _reading(api.entity)),
        Route("/api/decisions", _reading(api.decisions)),
        Route("/api/answer", _writing(api.answer), methods=["POST"]),
        Route("/api/undo", _writing(api.undo), methods=["POST"]),
        Route("/api/split", _writing(api.split), methods=["POST"]),
        Route("/api/merge", _writing(api.merge), methods=["POST"]),
        *reconciliation_routes(review, address),
    ]
    return Starlette(routes=routes)


class _Api:
    """The API calls of the page; each takes the parameters of a request and returns JSON data."""

    def __init__(self, review: Review) -> None:
        self.review = review

    def question(self, asked: dict[str, Any]) -> dict[str, Any]:
        found = self.review.next(_text(asked, "who") or "me")
        return {"question": None if found is None else describe_question(found), "progress": self._progress()}

    def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        who = _text(asked, "who") or "me"
        outcome = self.review.answer(
            _number(asked, "number"),
            _text(asked, "answer"),
            taken_out=_ids(asked, "taken_out") if "taken_out" in asked else (),
            who=who,
            why=_text(asked, "why"),
        )
        changed = [{"entity": entity, "records": size} for entity, size in outcome.changed[:MOST_TOLD]]
        saved = {"saved": outcome.decision, "moved": outcome.moved, "changed": changed}
        return saved | self.question(asked)

    def undo(self, asked: dict[str, Any]) -> dict[str, Any]:
        return {"undone": self.review.undo(who=_text(asked, "who") or "me")} | self.question(asked)

    def split(self, asked: dict[str, Any]) -> dict[str, Any]:
        outcome = self.review.split(_ids(asked), who=_text(asked, "who") or "me", why=_text(asked, "why"))
        return {"saved": outcome.decision}

    def merge(self, asked: dict[str, Any]) -> dict[str, Any]:
        outcome = self.review.merge(_ids(asked), who=_text(asked, "who") or "me", why=_text(asked, "why"))
        return {"saved": outcome.decision}

    def quality(self, asked: dict[str, Any]) -> dict[str, Any]:
        return describe_quality(self.review.quality())

    def entities(self, asked: dict[str, Any]) -> dict[str, Any]:
        return {"entities": self.review.entities(_text(asked, "search"))}

    def entity(self, asked: dict[str, Any]) -> dict[str, Any]:
        number = _number(asked, "entity")
        return {
            "entity": number,
            "records": self.review.members(number),
            "history": self.review.history(number),
        }

    def decisions(self, asked: dict[str, Any]) -> dict[str, Any]:
        return {"decisions": self.review.decisions()}

    def _progress(self) -> dict[str, Any]:
        return {"answers": self.review.answers}


def describe_question(question: Question) -> dict[str, Any]:
    """Return a question as plain data."""
    return {
        "number": question.number,
        "ids": question.ids,
        "records": question.records,
        "context": question.context,
        "sizes": question.sizes,
        "together": question.together,
        "probability": question.probability,
        "evidence": question.evidence,
        "kind": question.kind,
        "reason": question.reason,
        "shown": question.shown,
        "entities": question.entities,
    }


def describe_quality(quality: Quality) -> dict[str, Any]:
    """Return a quality estimate as plain data."""
    return {
        "precision": quality.precision._asdict(),
        "recall": quality.recall._asdict(),
        "answers": quality.answers,
        "to_halve": quality.to_halve,
    }


def respond(document: dict[str, Any], status: int = 200) -> Response:
    """Return a JSON response; values without a JSON type, such as dates, are written as text."""
    return Response(json.dumps(document, default=str, allow_nan=False), status, media_type="application/json")


def _asset(name: str, kind: str) -> Callable[[Request], Response]:
    content = files("factorwise.review").joinpath("assets", name).read_bytes()

    def serve(request: Request) -> Response:
        return Response(content, media_type=kind)

    return serve


def _reading(call: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[[Request], Any]:
    async def serve(request: Request) -> Response:
        return await _called(call, dict(request.query_params))

    return serve


def _writing(call: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[[Request], Any]:
    async def serve(request: Request) -> Response:
        try:
            asked = json.loads(await request.body())
        except ValueError:
            asked = None
        if not isinstance(asked, dict):
            return respond({"error": "the request is no JSON object."}, 400)
        return await _called(call, asked)

    return serve


async def _called(call: Callable[[dict[str, Any]], dict[str, Any]], asked: dict[str, Any]) -> Response:
    try:
        return respond(await run_in_threadpool(call, asked))
    except InvalidArgumentError as error:
        return respond({"error": str(error)}, 400)
    except FactorwiseError as error:
        return respond({"error": str(error)}, 500)


def _text(asked: dict[str, Any], name: str) -> str:
    value = asked.get(name, "")
    if not isinstance(value, str) or len(value) > LONGEST:
        raise InvalidArgumentError(f"{name} must be a text of at most {LONGEST} characters.")
    return value


def _number(asked: dict[str, Any], name: str) -> int:
    try:
        return int(asked.get(name, ""))
    except (TypeError, ValueError):
        raise InvalidArgumentError(f"{name} must be a whole number.") from None


def _ids(asked: dict[str, Any], name: str = "ids") -> list[str]:
    ids = asked.get(name)
    if not isinstance(ids, list) or not ids or not all(isinstance(one, str) for one in ids):
        raise InvalidArgumentError(f"{name} must be a list of ids of records.")
    return ids
