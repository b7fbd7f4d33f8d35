"""The reconciliation service, by which OpenRefine and others match a column with the entities of a store.

It implements the reconciliation API of the W3C community group, version 0.2: the manifest, batches of
queries, suggestions for entities and properties, and previews of entities.
"""

from __future__ import annotations

import json
from html import escape
from typing import Any
from urllib.parse import parse_qsl

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from factorwise.apps.resolution.curation import Review

VERSIONS = ["0.2"]
SPACE = "urn:factorwise:entity"
TYPE = {"id": "record", "name": "record"}
MOST_QUERIES = 100
MOST_RESULTS = 25
MOST_SUGGESTED, LONGEST_PREFIX = 10, 200


def reconciliation_routes(review: Review, address: str) -> list[Route]:
    """Return the routes of the service; ``address`` is the URL of the server with a trailing slash."""

    async def serve(request: Request) -> Response:
        if request.method == "POST":
            sent = dict(parse_qsl((await request.body()).decode("utf-8", "replace")))
        else:
            sent = dict(request.query_params)
        queries = sent.get("queries")
        if queries is None:
            return _json(manifest(review, f"{address}reconcile"))
        try:
            asked = json.loads(str(queries))
        except ValueError:
            return _json({"status": "error", "message": "queries is no JSON."}, 400)
        if not isinstance(asked, dict) or len(asked) > MOST_QUERIES:
            return _json(
                {"status": "error", "message": f"give up to {MOST_QUERIES} queries by their ids."}, 400
            )
        return _json(await run_in_threadpool(answer_queries, review, asked))

    async def entities(request: Request) -> Response:
        return _json(await run_in_threadpool(suggest_entities, review, _prefix(request)))

    def columns(request: Request) -> Response:
        return _json(suggest_columns(review, _prefix(request)))

    async def preview(request: Request) -> Response:
        number = request.query_params.get("id", "")
        if not number.isdecimal():
            return _json({"status": "error", "message": "id must be the number of an entity."}, 400)
        return HTMLResponse(await run_in_threadpool(preview_entity, review, int(number)))

    return [
        Route("/reconcile", serve, methods=["GET", "POST"]),
        Route("/reconcile/suggest/entity", entities),
        Route("/reconcile/suggest/property", columns),
        Route("/reconcile/preview", preview),
    ]


def suggest_entities(review: Review, prefix: str) -> dict[str, Any]:
    """Return the entities with a record that contains the typed text."""
    names = review.compared_columns()
    found = review.entities(prefix, most=MOST_SUGGESTED) if prefix.strip() else []
    return {
        "result": [
            {
                "id": str(one["entity"]),
                "name": " ".join(str(one["example"].get(name) or "") for name in names).strip()[:200],
                "description": f"{one['records']} records, such as {one['example']['id']}",
                "notable": [TYPE],
            }
            for one in found
        ]
    }


def suggest_columns(review: Review, prefix: str) -> dict[str, Any]:
    """Return the compared columns whose names contain the typed text."""
    found = [name for name in review.compared_columns() if prefix.lower() in name.lower()]
    return {"result": [{"id": name, "name": name} for name in found]}


def preview_entity(review: Review, entity: int) -> str:
    """Return an HTML page with some records of an entity; their values are escaped."""
    records = review.members(entity)
    names = list(records[0]) if records else []
    rows = [
        "".join(f"<td>{escape('' if value is None else str(value))}</td>" for value in record.values())
        for record in records[:MOST_SUGGESTED]
    ]
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    title = f"Entity {entity}: {len(records)} records"
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title></head>'
        f"<body><p>{title}</p><table><tr>{head}</tr>{body}</table></body></html>"
    )


def manifest(review: Review, address: str) -> dict[str, Any]:
    """Return the manifest of the service at an address, for its clients."""
    suggested = {"service_url": address}
    return {
        "versions": VERSIONS,
        "name": f"factorwise: {review.store.path.stem}",
        "identifierSpace": SPACE,
        "schemaSpace": f"{SPACE}:columns",
        "defaultTypes": [TYPE],
        "batchSize": MOST_QUERIES,
        "suggest": {
            "entity": {**suggested, "service_path": "/suggest/entity"},
            "property": {**suggested, "service_path": "/suggest/property"},
        },
        "preview": {"url": f"{address}/preview?id={{{{id}}}}", "width": 500, "height": 300},
    }


def answer_queries(review: Review, asked: dict[str, Any]) -> dict[str, Any]:
    """Return for each query the matching entities, best first."""
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


def _prefix(request: Request) -> str:
    return request.query_params.get("prefix", "")[:LONGEST_PREFIX]


def _json(document: dict[str, Any], status: int = 200) -> Response:
    return Response(json.dumps(document, default=str, allow_nan=False), status, media_type="application/json")
