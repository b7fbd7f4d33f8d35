"""Nobody else gets in: what the server refuses, and what OpenRefine asks."""

import http.client
import json
import socket
from urllib.parse import quote, urlsplit

import pytest

from factorwise.review.serving import LOOPBACK


def ask(server, path, *, method="GET", body=None, token=None, **headers):
    """Send one request as it is written here; return the status, the headers and the body."""
    place = urlsplit(server.address)
    connection = http.client.HTTPConnection(place.hostname, place.port, timeout=30)
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, f"/{server.token if token is None else token}{path}", body, sent)
    response = connection.getresponse()
    found = response.status, dict(response.getheaders()), response.read()
    connection.close()
    return found


def test_the_page_is_there_with_the_token_and_strict_headers(server):
    status, headers, body = ask(server, "/")
    assert status == 200
    assert b"review.js" in body
    assert "default-src 'none'" in headers["content-security-policy"]
    assert headers["referrer-policy"] == "no-referrer"
    assert "server" not in headers
    for name in ("review.js", "review.css", "api/question", "api/quality", "api/entities", "api/decisions"):
        assert ask(server, f"/{name}")[0] == 200


@pytest.mark.parametrize("token", ["", "x", "api", "../x", "%2e%2e"])
def test_requests_without_the_token_are_refused(server, token):
    assert ask(server, "/api/question", token=token)[0] == 403


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1", ""])
def test_another_host_is_refused(server, host):
    assert ask(server, "/api/question", host=host)[0] == 403


def test_other_origins_and_cross_site_posts_are_refused(server):
    body = json.dumps({"number": 1, "answer": "same"})
    good = {"content_type": "application/json"}
    for headers in (
        {"origin": "http://evil.example", **good},
        {"origin": "null", **good},
        {"origin": "http://127.0.0.1:3333", **good},
        {"sec_fetch_site": "cross-site", **good},
        {"sec_fetch_site": "same-site", **good},
        {"content_type": "text/plain"},
        {"content_type": "application/x-www-form-urlencoded"},
        {},
    ):
        assert ask(server, "/api/answer", method="POST", body=body, **headers)[0] == 403
    assert ask(server, "/api/question", origin="http://evil.example")[0] == 403
    assert server.review.store.decisions() == []


@pytest.mark.parametrize(
    "path", ["/../etc/passwd", "/..%2f..%2fetc/passwd", "/assets/../x", "/review.py", "//", "/\\x"]
)
def test_no_path_leads_out(server, path):
    assert ask(server, path)[0] in (403, 404)


def test_bodies_that_make_no_sense_are_told(server):
    kind = {"content_type": "application/json", "method": "POST"}
    for path, body in (
        ("/api/answer", "{"),
        ("/api/answer", "[]"),
        ("/api/answer", json.dumps({"number": "x", "answer": "same"})),
        ("/api/answer", json.dumps({"number": 99, "answer": "same"})),
        ("/api/answer", json.dumps({"number": 1, "answer": "perhaps"})),
        ("/api/answer", json.dumps({"number": 1, "answer": "same", "who": "x" * 2000})),
        ("/api/split", json.dumps({"ids": "r1"})),
        ("/api/merge", json.dumps({"ids": ["nobody"]})),
    ):
        status, _, found = ask(server, path, body=body, **kind)
        assert status == 400
        assert json.loads(found)["error"]


def test_nothing_listens_elsewhere(server):
    port = urlsplit(server.address).port
    assert urlsplit(server.address).hostname == LOOPBACK
    try:
        addresses = {one[4][0] for one in socket.getaddrinfo(socket.gethostname(), port, socket.AF_INET)}
    except OSError:
        addresses = set()
    for address in addresses - {LOOPBACK}:
        if address.startswith("127."):
            continue
        with pytest.raises(OSError):
            socket.create_connection((address, port), timeout=2)


def test_openrefine_reconciles_a_column(server):
    """The requests that OpenRefine 3 sends: the manifest, then a batch as a form."""
    status, headers, body = ask(server, "/reconcile", origin="http://127.0.0.1:3333")
    manifest = json.loads(body)
    assert (status, manifest["versions"]) == (200, ["0.2"])
    assert headers["access-control-allow-origin"] == "http://127.0.0.1:3333"
    assert {"name", "identifierSpace", "schemaSpace"} <= manifest.keys()
    record = next(one for one in server.review.members(3) if one["id"])
    queries = {
        "q0": {
            "query": record["first"],
            "limit": 3,
            "type": "record",
            "type_strict": "should",
            "properties": [{"pid": "last", "v": record["last"]}, {"pid": "born", "v": record["born"] or ""}],
        },
        "q1": {"query": "zzzz"},
    }
    form = f"queries={quote(json.dumps(queries))}"
    kind = {"content_type": "application/x-www-form-urlencoded;charset=UTF-8", "method": "POST"}
    status, _, body = ask(server, "/reconcile", body=form, **kind)
    assert status == 200
    found = json.loads(body)
    assert found["q1"] == {"result": []}
    best = found["q0"]["result"][0]
    assert {"id", "name", "type", "score", "match"} <= best.keys()
    assert "3" in [one["id"] for one in found["q0"]["result"]]
    assert ask(server, "/reconcile", body="queries=%7B", **kind)[0] == 400
    assert ask(server, "/reconcile", origin="http://evil.example")[0] == 403


def test_openrefine_is_offered_suggestions_and_previews(server):
    manifest = json.loads(ask(server, "/reconcile")[2])
    assert manifest["suggest"]["entity"]["service_url"] == f"{server.address}reconcile"
    record = next(one for one in server.review.members(3) if one["id"])
    paths = {name: manifest["suggest"][name]["service_path"] for name in ("entity", "property")}
    _, _, body = ask(server, f"/reconcile{paths['entity']}?prefix={quote(record['last'])}")
    found = json.loads(body)["result"]
    assert found
    assert all({"id", "name", "description"} <= one.keys() for one in found)
    assert json.loads(ask(server, f"/reconcile{paths['entity']}?prefix=")[2]) == {"result": []}
    _, _, body = ask(server, f"/reconcile{paths['property']}?prefix=LA")
    assert json.loads(body)["result"] == [{"id": "last", "name": "last"}]
    evil = next(one["entity"] for one in server.review.entities("window.harmed"))
    assert manifest["preview"]["url"] == f"{server.address}reconcile/preview?id={{{{id}}}}"
    status, headers, body = ask(server, f"/reconcile/preview?id={evil}", sec_fetch_site="cross-site")
    assert status == 200
    assert b"<script" not in body
    assert b"&lt;script&gt;" in body
    assert "frame-ancestors http://127.0.0.1:3333" in headers["content-security-policy"]
    assert "frame-ancestors 'none'" in ask(server, "/reconcile")[1]["content-security-policy"]
    assert ask(server, "/reconcile/preview?id=x")[0] == 400
    assert b"0 records" in ask(server, "/reconcile/preview?id=987654321")[2]
    assert ask(server, "/reconcile/preview?id=3", origin="http://evil.example")[0] == 403
