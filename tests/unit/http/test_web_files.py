"""The files of the web UI, the headers of every answer, and answers that clients keep."""

from __future__ import annotations

import gzip
import http.client
import json
import re
import threading
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.server import serving
from tests.unit.http.test_app import TestClient, run_event

from downriver.http import build_app
from downriver.http.server.security_headers import SECURITY_HEADERS
from downriver.http.web_files import PAGES, WebFiles, parse_accept_encoding
from downriver.service import Lineage

SCRIPT = b"console.log('built');" * 100


@pytest.fixture
def lineage(tmp_path):
    with Lineage.open(str(tmp_path / "store")) as opened:
        yield opened


@pytest.fixture
def folder(tmp_path):
    built = tmp_path / "web"
    (built / "assets").mkdir(parents=True)
    (built / "index.html").write_text("<!doctype html><title>UI</title>")
    (built / "favicon.svg").write_text("<svg/>")
    (built / "assets" / "main-B1x_2-3d.js").write_bytes(SCRIPT)
    (built / "assets" / "main-B1x_2-3d.js.gz").write_bytes(gzip.compress(SCRIPT))
    (built / ".sources").write_text("secret")
    (tmp_path / "outside.txt").write_text("a text of another folder")
    return built


@pytest.fixture
def client(lineage, folder):
    app = build_app(lineage)
    app.router.default = WebFiles(folder)
    with TestClient(app) as opened:
        yield opened


BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.mark.parametrize("path", ["/", "/lineage", "/entity?id=orders", "/settings/"])
def test_pages_of_the_ui_get_the_first_page_without_a_key(client, lineage, path):
    lineage.admin.create_key("someone", "reader")
    answer = client.get(path)
    assert (answer.status_code, "<title>UI" in answer.text) == (200, True)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["cache-control"] == "no-cache"


@pytest.mark.parametrize("path", ["/nope", "/no/such/page", "/.sources", "/robots.txt", "/v2"])
def test_other_pages_are_not_found(client, path):
    shown = client.get(path, headers=BROWSER)
    assert (shown.status_code, "<title>UI" in shown.text) == (404, True)
    known = {"If-None-Match": shown.headers["etag"], **BROWSER}
    assert client.get(path, headers=known).status_code == 404
    answer = client.get(path)
    assert (answer.status_code, answer.json()["error"]) == (404, "NotFound")


def test_the_server_serves_the_pages_of_the_ui():
    routes = Path(__file__).parents[3] / "web" / "src" / "shell" / "routes.ts"
    paths = re.findall(r'{ path: "/([^"]*)"', routes.read_text("utf-8"))
    assert set(paths) == PAGES


def test_hashed_files_are_kept_for_ever_and_sent_compressed(client):
    answer = client.get("/assets/main-B1x_2-3d.js")
    assert answer.content == SCRIPT
    assert answer.headers["content-encoding"] == "gzip"
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert answer.headers["content-type"].startswith("text/javascript")
    plain = client.get("/assets/main-B1x_2-3d.js", headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert plain.content == SCRIPT
    assert client.get("/assets/main-old00000.js").status_code == 404
    assert client.get("/favicon.svg").headers["cache-control"] == "no-cache"


def test_a_file_that_the_client_has_is_not_sent_again(client):
    first = client.get("/")
    again = client.get("/", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/v1/unknown"), ("GET", "/api/v2"), ("POST", "/"), ("POST", "/v1/unknown")],
)
def test_other_paths_stay_unknown(client, method, path):
    assert client.request(method, path).status_code == 404


def test_a_build_that_is_replaced_is_noticed(client, folder):
    assert "UI" in client.get("/").text
    (folder / "index.html").unlink()
    missing = client.get("/")
    assert (missing.status_code, "not built" in missing.text) == (503, True)
    (folder / "index.html").write_text("<title>New</title>")
    assert "New" in client.get("/").text


@pytest.mark.parametrize(
    "path",
    [
        "/../outside.txt",
        "/assets/../../outside.txt",
        "/%2e%2e/outside.txt",
        "/assets/%2e%2e/%2e%2e/outside.txt",
        "/..%5coutside.txt",
        "//outside.txt",
        "/assets/..%2f..%2foutside.txt",
    ],
)
def test_no_path_leads_out_of_the_folder(lineage, path):
    with serving(lineage) as url:
        connection = http.client.HTTPConnection(urlsplit(url).netloc)
        connection.request("GET", path)
        assert b"a text of another folder" not in connection.getresponse().read()
        connection.close()


@pytest.mark.parametrize("path", ["/", "/v1/status", "/v1/nothing", "/openapi.json", "/v1/graph"])
def test_every_answer_has_the_security_headers(client, path):
    headers = client.get(path).headers
    for name, value in SECURITY_HEADERS.items():
        assert headers[name] == value
    assert "unsafe" not in headers["content-security-policy"]


def test_a_fault_has_them_too(lineage):
    app = build_app(lineage)
    lineage.store.close()
    with TestClient(app, raise_server_exceptions=False) as broken:
        headers = broken.get("/v1/status").headers
    assert headers["x-content-type-options"] == "nosniff"


def test_an_answer_is_sent_again_only_when_events_came(client):
    client.post("/api/v1/lineage", json=run_event("clean", ["raw"], ["orders"]))
    first = client.get("/v1/graph", params={"entity": "orders"})
    kept = {"If-None-Match": first.headers["etag"]}
    assert first.headers["cache-control"] == "private, no-cache"
    again = client.get("/v1/graph", params={"entity": "orders"}, headers=kept)
    assert (again.status_code, again.content) == (304, b"")
    anything = client.get("/v1/graph", params={"entity": "orders"}, headers={"If-None-Match": "*"})
    assert anything.status_code == 304
    unknown = client.get("/v1/graph", params={"entity": "nothing"}, headers={"If-None-Match": "*"})
    assert unknown.status_code == 404
    other = client.get("/v1/graph", params={"entity": "orders", "depth": "2"}, headers=kept)
    assert other.status_code == 200
    client.post("/api/v1/lineage", json=run_event("report", ["orders"], ["daily"]))
    fresh = client.get("/v1/graph", params={"entity": "orders"}, headers=kept)
    assert (fresh.status_code, fresh.json()["total"]) == (200, 5)


def test_a_tag_does_not_admit_a_client_without_a_key(client, lineage):
    client.post("/api/v1/lineage", json=run_event("clean", ["raw"], ["orders"]))
    tag = client.get("/v1/graph", params={"entity": "orders"}).headers["etag"]
    lineage.admin.create_key("someone", "reader")
    with TestClient(build_app(lineage)) as keyed:
        answer = keyed.get("/v1/graph?entity=orders", headers={"If-None-Match": tag})
    assert answer.status_code == 401


def test_an_answer_that_depends_on_more_than_events_has_a_tag_of_its_content(client, lineage):
    first = client.get("/v1/me")
    kept = {"If-None-Match": first.headers["etag"]}
    assert client.get("/v1/me", headers=kept).status_code == 304


def test_a_tag_is_never_newer_than_its_answer(client):
    client.post("/api/v1/lineage", json=run_event("clean0", ["raw"], ["orders0"]))
    asked = {"url": "/v1/trace", "params": {"entity": "raw"}}
    for run in range(1, 21):
        event = run_event(f"clean{run}", ["raw"], [f"orders{run}"])
        writer = threading.Thread(
            target=client.post, args=("/api/v1/lineage",), kwargs={"json": event}
        )
        writer.start()
        kept = client.get(**asked)
        writer.join()
        now = client.get(**asked, headers={"If-None-Match": kept.headers["etag"]})
        names = {node["name"] for node in (now if now.status_code == 200 else kept).json()["nodes"]}
        assert f"orders{run}" in names, now.status_code


def test_errors_have_no_tag(client):
    assert "etag" not in client.get("/v1/graph?entity=nothing").headers


def test_long_answers_are_compressed(client):
    outputs = [f"table_{i}" for i in range(50)]
    client.post("/api/v1/lineage", json=run_event("fan", ["raw"], outputs))
    url = "/v1/graph?entity=raw"
    packed = client.get(url)
    plain = client.get(url, headers={"Accept-Encoding": "identity"})
    refused = client.get(url, headers={"Accept-Encoding": "gzip;q=0"})
    assert packed.headers["content-encoding"] == "gzip"
    assert int(packed.headers["content-length"]) < len(plain.content) / 4
    assert packed.json() == plain.json() == json.loads(refused.content)
    assert "content-encoding" not in refused.headers
    assert "content-encoding" not in client.get("/v1/me").headers


def test_accepted_encodings_are_parsed():
    assert parse_accept_encoding("gzip, br;q=0.5, deflate;q=0, x;q=0.0") == {"gzip", "br"}


def test_news_waits_until_an_event_comes(client):
    head = client.get("/v1/news").json()["head"]
    assert client.get("/v1/news", params={"head": head + 1, "wait": 20}).json() == {"head": head}
    assert client.get("/v1/news", params={"head": head, "wait": 1}).json() == {"head": head}
    client.post("/api/v1/lineage", json=run_event("clean", ["raw"], ["orders"]))
    moved = client.get("/v1/news", params={"head": head, "wait": 20}).json()
    assert moved["head"] > head
    assert client.get("/v1/news", params={"wait": 26}).status_code == 400
