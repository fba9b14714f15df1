"""Delivery of events: dead servers, ending processes, concurrent writers."""

from __future__ import annotations

import json
import multiprocessing
import os
import socket
import subprocess
import sys
import time
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from tests.server import free_port, serving

from downriver import Lineage, LineageEmitter, lineage_sync, track_lineage
from downriver.capture.emit import Spool
from downriver.errors import ForbiddenError, ServerUnreachableError, UnauthorizedError


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DOWNRIVER_SPOOL", str(tmp_path / "spool"))
    monkeypatch.setenv("DOWNRIVER_STORE", str(tmp_path / "store"))
    return tmp_path


@pytest.fixture
def dead_server():
    return f"http://127.0.0.1:{free_port()}"


@pytest.fixture
def silent_server():
    """A server that accepts connections and never answers."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


class Redirecting(BaseHTTPRequestHandler):
    """Answers each request as a login page would: with a redirect."""

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(302)
        self.send_header("Location", "/login")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args):
        del args


@pytest.fixture
def redirecting_server():
    with ThreadingHTTPServer(("127.0.0.1", 0), Redirecting) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def spooled(folder):
    return [
        json.loads(line)
        for path in (folder / "spool").glob("*.jsonl")
        for line in path.read_bytes().splitlines()
    ]


def test_a_server_that_redirects_does_not_lose_a_flow(here, redirecting_server):
    tracker = lineage_sync(redirecting_server)
    assert tracker.register_flow("table:a", "table:b")["status"] == "spooled"
    assert len(spooled(here)) == 1


def test_a_dead_server_does_not_affect_a_tracked_function(here, dead_server):
    tracker = lineage_sync(dead_server)

    @tracker.track("table:a", "table:b")
    def load():
        return 42

    before = time.perf_counter()
    assert load() == 42
    assert time.perf_counter() - before < 0.5
    tracker.close()
    assert [event["eventType"] for event in spooled(here)] == ["START", "COMPLETE"]


def test_a_silent_server_does_not_affect_a_tracked_function(here, silent_server, monkeypatch):
    monkeypatch.setenv("DOWNRIVER_URL", silent_server)

    @track_lineage(["table:a"], ["table:b"])
    def load():
        return 42

    before = time.perf_counter()
    assert load() == 42
    assert time.perf_counter() - before < 0.5


def test_events_are_sent_or_spooled_when_the_process_ends(here, silent_server):
    script = (
        "from downriver import track_lineage\n"
        "track_lineage(['table:a'], ['table:b'])(lambda: 1)()\n"
    )
    before = time.perf_counter()
    environment = {**os.environ, "DOWNRIVER_URL": silent_server}
    subprocess.run([sys.executable, "-c", script], check=True, env=environment)
    assert time.perf_counter() - before < 15
    assert [event["eventType"] for event in spooled(here)] == ["START", "COMPLETE"]


def test_what_was_spooled_is_sent_once_the_server_is_back(here, dead_server):
    tracker = lineage_sync(dead_server)
    tracker.track("table:a", "table:b")(lambda: None)()
    tracker.close()
    assert spooled(here)
    with Lineage.open(str(here / "server")) as store, serving(store) as url:
        back = lineage_sync(url)
        back.track("table:b", "table:c")(lambda: None)()
        assert back.get_downstream_impact("table:a") == ["table:b", "table:c"]
        back.close()
    assert spooled(here) == []


def test_a_flow_for_a_dead_server_is_spooled(here, dead_server):
    tracker = lineage_sync(dead_server)
    done = tracker.register_flow("table:a", "table:b", transformation="copy")
    assert (done["source_id"], done["status"]) == ("table:a", "spooled")
    pipeline = tracker.register_pipeline("p", [{"source_id": "table:b", "target_id": "table:c"}])
    assert pipeline["flows"][0]["status"] == "spooled"
    captured = tracker.capture_sql_lineage("INSERT INTO d SELECT x FROM c")
    assert captured["target_tables"] == ["d"]
    tracker.close()
    with Lineage.open(str(here / "server")) as store:
        Spool(here / "spool").drain(store.ingest)
        found = store.entities.related("table:a", "downstream")
    assert [entity.entity_id for entity in found.downstream] == ["table:b", "table:c", "table:d"]


def test_a_question_to_a_dead_server_is_an_error(here, dead_server):
    tracker = lineage_sync(dead_server)
    with pytest.raises(ServerUnreachableError, match=dead_server):
        tracker.trace_downstream("table:a")


def test_an_emitter_takes_events_as_dictionaries(here):
    emitter = LineageEmitter()
    emitter.emit(
        {
            "eventType": "COMPLETE",
            "eventTime": "2026-01-01T00:00:00Z",
            "run": {"runId": "r1"},
            "job": {"namespace": "n", "name": "j"},
            "inputs": [{"namespace": "n", "name": "a"}],
            "outputs": [{"namespace": "n", "name": "b"}],
        }
    )
    assert emitter.flush()
    assert lineage_sync().get_downstream_impact("a") == ["dataset:n:b"]


def _register(location, number):
    tracker = lineage_sync(location)
    for step in range(5):
        tracker.register_flow("table:hub", f"table:t{number}_{step}")
    tracker.track("table:hub", f"table:tracked{number}")(lambda: None)()
    tracker.close()


def test_many_processes_write_one_store(here):
    context = multiprocessing.get_context("spawn")
    workers = [
        context.Process(target=_register, args=(str(here / "store"), number)) for number in range(3)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    assert len(lineage_sync().get_downstream_impact("table:hub")) == 18


def _call_tracked(number):
    track_lineage(["table:hub"], [f"table:forked{number}"])(lambda: None)()


def test_a_forked_process_sends_its_events(here):
    _call_tracked(0)  # the parent's emitter is running when the children are made
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_call_tracked, args=(number,)) for number in (1, 2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0, 0]
    tracker = lineage_sync()
    Spool(here / "spool").drain(tracker.backend.send)  # what took too long at the end waits there
    found = set(tracker.get_downstream_impact("table:hub"))
    assert {"table:forked1", "table:forked2"} <= found


def _register_from_child(tracker, number):
    tracker.register_flow("table:hub", f"table:child{number}")
    tracker.track("table:hub", f"table:called{number}")(lambda: None)()


@pytest.mark.parametrize("mode", ["embedded", "remote"])
def test_a_forked_process_may_use_its_parents_tracker(here, mode):
    with Lineage.open(str(here / "server")) as store, serving(store) as url:
        tracker = lineage_sync(url if mode == "remote" else str(here / "store"))
        tracker.register_flow("table:hub", "table:parent")
        context = multiprocessing.get_context("fork")
        workers = [
            context.Process(target=_register_from_child, args=(tracker, number))
            for number in (1, 2)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(60)
        assert [worker.exitcode for worker in workers] == [0, 0]
        Spool(here / "spool").drain(tracker.backend.send)
        Spool(here / "store" / "spool").drain(tracker.backend.send)
        assert set(tracker.get_downstream_impact("table:hub")) == {
            "table:parent", "table:child1", "table:child2", "table:called1", "table:called2",
        }  # fmt: skip
        tracker.close()


def test_importing_downriver_loads_nothing_heavy():
    script = (
        "import sys\n"
        "import downriver\n"
        "heavy = {'sqlglot', 'numpy', 'msgspec', 'starlette', 'pandas', 'pyspark', 'rich'}\n"
        "print(sorted(heavy & sys.modules.keys()))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["[]"]


def test_a_function_that_reports_to_a_server_loads_no_graph(here, monkeypatch):
    monkeypatch.setenv("DOWNRIVER_URL", f"http://127.0.0.1:{free_port()}")
    script = (
        "import sys\n"
        "from downriver import track_lineage\n"
        "@track_lineage(inputs=['table:a'], outputs=['table:b'])\n"
        "def job(): return 1\n"
        "job()\n"
        "print(sorted({'sqlglot', 'numpy', 'jinja2', 'downriver.graph'} & sys.modules.keys()))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_with_keys_readers_can_ask_and_writers_can_register(here, monkeypatch):
    with Lineage.open(str(here / "server")) as store, serving(store) as url:
        keys = {role: store.admin.create_key(role, role) for role in ("reader", "writer")}

        def tracker_as(role):
            monkeypatch.setenv("DOWNRIVER_API_KEY", keys.get(role, ""))
            return closing(lineage_sync(url))

        with tracker_as("nobody") as tracker, pytest.raises(UnauthorizedError):
            tracker.search_entities("a")
        with tracker_as("writer") as tracker:
            tracker.register_flow("table:a", "table:b")
        with tracker_as("reader") as tracker:
            assert tracker.get_downstream_impact("table:a") == ["table:b"]
            with pytest.raises(ForbiddenError, match="role writer"):
                tracker.register_flow("table:a", "table:c")
    assert spooled(here) == []
