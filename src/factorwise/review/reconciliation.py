"""The reconciliation service: OpenRefine and others match a column of theirs against the entities of a store.

Follows the reconciliation API of the W3C community group, version 0.2: the manifest and batches of queries.
Suggestions for entities and properties, and previews, are not offered.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qsl

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from factorwise.apps.resolution.curation import Review

VERSIONS = ["0.2"]
SPACE = "urn:factorwise:entity"
TYPE = {"id": "record", "name": "record"}
MOST_QUERIES = 100
MOST_RESULTS = 25


def reconciliation_routes(review: Review) -> list[Route]:
    """Return the routes of the service."""

    async def serve(request: Request) -> Response:
        if request.method == "POST":
            sent = dict(parse_qsl((await request.body()).decode("utf-8", "replace")))
        else:
            sent = dict(request.query_params)
        queries = sent.get("queries")
        if queries is None:
            return _json(manifest(review))
        try:
            asked = json.loads(str(queries))
        except ValueError:
            return _json({"status": "error", "message": "queries is no JSON."}, 400)
        if not isinstance(asked, dict) or len(asked) > MOST_QUERIES:
            return _json(
                {"status": "error", "message": f"give up to {MOST_QUERIES} queries by their ids."}, 400
            )
        return _json(await run_in_threadpool(answer_queries, review, asked))

    return [Route("/reconcile", serve, methods=["GET", "POST"])]


def manifest(review: Review) -> dict[str, Any]:
    """Return what a client must know of the service."""
    return {
        "versions": VERSIONS,
        "name": f"factorwise: {review.store.path.stem}",
        "identifierSpace": SPACE,
        "schemaSpace": f"{SPACE}:columns",
        "defaultTypes": [TYPE],
        "batchSize": MOST_QUERIES,
    }


def answer_queries(review: Review, asked: dict[str, Any]) -> dict[str, Any]:
    """Return for each query the entities that it may mean, the best first."""
    return {str(name): {"result": _results(review, query)} for name, query in asked.items()}


def _results(review: Review, query: Any) -> list[dict[str, Any]]:
    if not isinstance(query, dict) or not isinstance(query.get("query", ""), str):
        return []
    columns = review.compared_columns()
    record: dict[str, Any] = {columns[0]: query.get("query", "")} if columns else {}
    for one in query.get("properties") or []:
        if isinstance(one, dict) and one.get("pid") in columns:
            value = one.get("v")
            value = value[0] if isinstance(value, list) and value else value
            record[str(one["pid"])] = value.get("name") if isinstance(value, dict) else value
    limit = query.get("limit")
    most = min(limit, MOST_RESULTS) if isinstance(limit, int) and limit > 0 else MOST_RESULTS
    found = review.lookup(record, most=most)
    return [
        {
            "id": str(match.entity),
            "name": review.name_of(match.record, columns),
            "type": [TYPE],
            "score": round(100.0 * match.probability, 2),
            "match": match.probability > 0.95,
            "features": [{"id": name, "value": round(value, 3)} for name, value in match.reasons[:8]],
        }
        for match in found
    ]


def _json(document: dict[str, Any], status: int = 200) -> Response:
    return Response(json.dumps(document, default=str, allow_nan=False), status, media_type="application/json")
