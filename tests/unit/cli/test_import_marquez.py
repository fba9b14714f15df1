"""`downriver import marquez`, from a server with its API and from a PostgreSQL with its table."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest
from tests.openlineage import dataset, dataset_event, run_event
from tests.unit.cli.command import downriver

from downriver.capture.marquez import MarquezApi
from downriver.openlineage.wire import parse_time
from downriver.service import Lineage


class MarquezServer(ThreadingHTTPServer):
    """Lists events as Marquez does: filtered by time, sorted, by limit and offset."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.events: list[dict] = []
        self.requests: list[dict] = []
        self.failures: list[int] = []  # statuses of the next answers
        self.key: str | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def list_events(self, query: dict[str, str]) -> dict:
        after, before = (parse_time(query[name], name) for name in ("after", "before"))
        found = [e for e in self.events if after <= parse_time(e["eventTime"], "") < before]
        found.sort(key=lambda e: e["eventTime"], reverse=query["sortDirection"] == "desc")
        offset, limit = int(query["offset"]), int(query["limit"])
        return {"events": found[offset : offset + limit], "totalCount": len(found)}


class _Handler(BaseHTTPRequestHandler):
    server: MarquezServer

    def do_GET(self) -> None:
        target = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(target.query).items()}
        self.server.requests.append(query)
        status = self.server.failures.pop(0) if self.server.failures else 200
        key = self.server.key
        if key is not None and self.headers["Authorization"] != f"Bearer {key}":
            status = 401
        if target.path != "/api/v1/events/lineage":
            status = 404
        body = json.dumps(self.server.list_events(query)).encode() if status == 200 else b""
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Print nothing."""


@contextmanager
def running_marquez():
    server = MarquezServer()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def marquez():
    with running_marquez() as server:
        yield server


def run_of(number: int, at: str | None = None):
    time = at or f"2026-01-01T{number // 3600:02d}:{number // 60 % 60:02d}:{number % 60:02d}Z"
    outputs = [dataset(f"out{number % 7}")]
    return run_event("load", f"run-{number}", at=time, inputs=[dataset("raw")], outputs=outputs)


def count(folder) -> int:
    with Lineage.open(str(folder)) as lineage:
        return lineage.admin.status().counts.events


def import_from(source: str, folder, *options: str):
    return downriver("import", "marquez", source, "--store", str(folder), *options, cwd=folder)


def imported(source: str, folder, *options: str, exit_code: int = 0) -> dict:
    done = import_from(source, folder, "--json", *options)
    assert done.returncode == exit_code, done.stderr
    return json.loads(done.stdout)


class TestApi:
    def test_all_pages_are_stored_once(self, marquez, tmp_path):
        marquez.events = [run_of(n) for n in range(1_234)]
        answer = imported(marquez.url, tmp_path)
        assert (answer["stored"], answer["duplicates"], answer["problems"]) == (1_234, 0, [])
        assert count(tmp_path) == 1_234
        assert max(int(request["offset"]) for request in marquez.requests) == 0

    def test_more_events_of_one_time_than_a_page_are_read_by_offset(self, marquez, tmp_path):
        marquez.events = [run_of(n, "2026-01-01T00:00:00Z") for n in range(1_100)] + [run_of(7_000)]
        assert imported(marquez.url, tmp_path)["stored"] == 1_101

    def test_a_second_run_reads_only_what_is_new(self, marquez, tmp_path):
        marquez.events = [run_of(n) for n in range(20)]
        imported(marquez.url, tmp_path)
        marquez.requests.clear()
        marquez.events += [run_of(n) for n in range(20, 25)]
        answer = imported(marquez.url, tmp_path)
        assert (answer["stored"], answer["duplicates"]) == (5, 1)
        assert answer["since"] == "2026-01-01T00:00:19Z"
        assert {request["after"] for request in marquez.requests} == {"2026-01-01T00:00:19Z"}
        assert imported(marquez.url, tmp_path, "--restart")["duplicates"] == 25

    def test_an_interrupted_import_continues(self, marquez, tmp_path):
        marquez.events = [run_of(n) for n in range(1_200)]
        marquez.failures = [200, 200, 403]  # the count, the first page, then no more
        done = import_from(marquez.url, tmp_path)
        assert done.returncode != 0
        assert "403" in done.stderr
        assert "--api-key" in done.stderr
        assert count(tmp_path) == 500
        assert imported(marquez.url, tmp_path)["stored"] == 700
        assert count(tmp_path) == 1_200

    def test_a_busy_server_is_asked_again(self, marquez):
        marquez.events = [run_of(1)]
        marquez.failures = [503, 502]
        assert MarquezApi(marquez.url, first_delay=0).count(0) == 1

    def test_an_event_that_cannot_be_read_does_not_cost_the_others(self, marquez, tmp_path):
        marquez.events = [run_of(1), {"eventTime": "2026-01-01T00:00:02Z"}, run_of(3)]
        answer = imported(marquez.url, tmp_path, exit_code=1)
        assert (answer["stored"], len(answer["problems"])) == (2, 1)

    def test_a_key_is_sent(self, marquez, tmp_path):
        marquez.key, marquez.events = "secret", [run_of(1)]
        assert imported(marquez.url, tmp_path, "--api-key", "secret")["stored"] == 1

    @pytest.mark.parametrize("source", ["ftp://host", "marquez", "http://"])
    def test_a_source_that_is_no_url_is_refused(self, tmp_path, source):
        done = import_from(source, tmp_path)
        assert done.returncode != 0
        assert "source" in done.stderr

    def test_a_server_that_is_not_marquez_is_named(self, marquez, tmp_path):
        done = import_from(f"{marquez.url}/other", tmp_path)
        assert done.returncode != 0
        assert "404" in done.stderr


class TestDatabase:
    @pytest.fixture
    def database(self, postgres_database):
        """Yield a database with the table of Marquez 0.51, and a function that adds events."""
        with psycopg.connect(postgres_database, autocommit=True) as connection:
            connection.execute("""
                CREATE TABLE lineage_events (
                    event_time TIMESTAMPTZ NOT NULL,
                    event JSONB NOT NULL,
                    event_type TEXT,
                    job_name TEXT,
                    job_namespace TEXT,
                    producer TEXT,
                    run_uuid UUID,
                    created_at TIMESTAMPTZ DEFAULT now(),
                    _event_type VARCHAR(64) DEFAULT 'RUN_EVENT'
                )
            """)

            def add(*events: dict) -> None:
                for event in events:
                    connection.execute(
                        "INSERT INTO lineage_events (event_time, event) VALUES (%s, %s)",
                        (event["eventTime"], json.dumps(event)),
                    )

            yield postgres_database, add

    def test_events_of_runs_and_datasets_are_stored(self, database, tmp_path):
        url, add = database
        add(*(run_of(n) for n in range(600)), dataset_event("declared", at="2026-01-02T00:00:00Z"))
        assert imported(url, tmp_path)["stored"] == 601
        with Lineage.open(str(tmp_path)) as lineage:
            outputs = {edge.target for edge in lineage.trace("raw").edges if edge.kind == "writes"}
        assert len(outputs) == 7

    def test_a_second_run_reads_only_what_is_new(self, database, tmp_path):
        url, add = database
        add(run_of(1), run_of(2))
        imported(url, tmp_path)
        add(run_of(3))
        answer = imported(url, tmp_path)
        assert (answer["stored"], answer["duplicates"]) == (1, 1)

    def test_a_database_without_the_table_is_named(self, postgres_database, tmp_path):
        done = import_from(postgres_database, tmp_path)
        assert done.returncode != 0
        assert "lineage_events" in done.stderr

    def test_a_password_is_not_shown(self, tmp_path):
        url = "postgresql://me:hidden@127.0.0.1:1/marquez"
        done = import_from(url, tmp_path)
        assert done.returncode != 0
        assert "hidden" not in done.stderr
