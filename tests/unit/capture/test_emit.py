"""Events leave a job without an exception, a wait or a loss."""

from __future__ import annotations

import gzip
import json
import logging
import os
import threading
import time
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING

import pytest

from downriver.capture.emit import Emitter, HttpSender, Spool, guarded
from downriver.capture.emit.http_sender import NotDeliveredError
from downriver.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Sink:
    """Takes events, or fails as it is told to."""

    def __init__(self) -> None:
        self.taken: list[bytes] = []
        self.failing = False
        self.gate = threading.Event()
        self.gate.set()

    def __call__(self, events: list[bytes]) -> None:
        self.gate.wait(10)
        if self.failing:
            raise OSError("nobody there")
        self.taken += events


@pytest.fixture
def sink() -> Sink:
    return Sink()


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Spool(tmp_path / "spool")


def test_events_arrive_in_the_order_they_were_emitted(sink: Sink, spool: Spool) -> None:
    emitter = Emitter(sink, spool)
    for at in range(500):
        emitter.emit(b"%d" % at)
    assert emitter.flush()
    assert sink.taken == [b"%d" % at for at in range(500)]


def test_emitting_does_not_wait_for_a_slow_collector(sink: Sink, spool: Spool) -> None:
    sink.gate.clear()
    emitter = Emitter(sink, spool)
    emitter.emit(b"1", b"2")  # would block here for ten seconds
    assert not emitter.flush(0.05)
    sink.gate.set()
    assert emitter.flush()
    assert sink.taken == [b"1", b"2"]


def test_without_a_collector_events_are_spooled(sink: Sink, spool: Spool) -> None:
    sink.failing = True
    emitter = Emitter(sink, spool)
    emitter.emit(b"1", b"2")
    assert emitter.flush()
    emitter.emit(b"3")
    assert emitter.flush()
    assert spool.state().events == 3


def test_what_was_spooled_is_sent_by_the_next_process(sink: Sink, spool: Spool) -> None:
    spool.add([b"1", b"2"])
    emitter = Emitter(sink, Spool(spool.folder))
    emitter.emit(b"3")
    assert emitter.flush()
    assert sink.taken == [b"1", b"2", b"3"]
    assert spool.state().events == 0


def test_what_was_spooled_is_sent_once_the_collector_is_back(
    sink: Sink, spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("downriver.capture.emit.emitter._RETRY_AFTER", 0.0)
    sink.failing = True
    emitter = Emitter(sink, spool)
    emitter.emit(b"1")
    assert emitter.flush()
    sink.failing = False
    emitter.emit(b"2")
    assert emitter.flush()
    assert sink.taken == [b"1", b"2"]


def test_a_full_disk_does_not_reach_the_job(sink: Sink, tmp_path: Path) -> None:
    sink.failing = True
    (tmp_path / "file").write_text("a file where the folder should be")
    emitter = Emitter(sink, Spool(tmp_path / "file" / "spool"))
    emitter.emit(b"1")
    assert emitter.flush()


def test_a_drain_that_fails_half_way_keeps_the_rest(spool: Spool) -> None:
    spool.add([b"%d" % at for at in range(450)])
    sent: list[bytes] = []

    def send(events: list[bytes]) -> None:
        if sent:
            raise OSError("gone again")
        sent.extend(events)

    with pytest.raises(OSError, match="gone again"):
        spool.drain(send)
    assert len(sent) == 200
    assert spool.state().events == 250
    assert spool.drain(sent.extend) == 250
    assert sent == [b"%d" % at for at in range(450)]


def test_a_file_another_process_took_and_left_is_taken_again(spool: Spool) -> None:
    spool.add([b"1"])
    (file,) = spool.folder.glob("*.jsonl")
    taken = file.rename(file.with_suffix(".sending"))
    assert spool.drain(lambda events: None) == 0  # it may still be at it
    long_ago = time.time() - 3600
    os.utime(taken, (long_ago, long_ago))
    assert spool.drain(lambda events: None) == 1


def test_an_internal_error_is_logged_once_as_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="downriver")
    for _ in range(3):
        with guarded("a test of the guard"):
            raise ZeroDivisionError
    levels = [record.levelname for record in caplog.records]
    assert levels == ["WARNING", "DEBUG", "DEBUG"]


class Collector(HTTPServer):
    """A collector that answers with the statuses it is given."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.statuses: list[int] = []
        self.events: list[object] = []
        self.keys: set[str | None] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/base/"


class Answering(BaseHTTPRequestHandler):
    server: Collector
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers["Content-Encoding"] == "gzip":
            body = gzip.decompress(body)
        self.server.events.append(json.loads(body))
        self.server.keys.add(self.headers["Authorization"])
        assert self.path == "/base/api/v1/lineage"
        status = self.server.statuses.pop(0) if self.server.statuses else 201
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args: object) -> None:
        del args


@pytest.fixture
def collector() -> Iterator[Collector]:
    server = Collector()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


def test_events_are_posted_with_the_key_and_compressed_when_large(collector: Collector) -> None:
    with closing(HttpSender(collector.url, "secret")) as send:
        send([b'{"n": 1}', json.dumps({"n": "x" * 5000}).encode()])
    assert collector.events == [{"n": 1}, {"n": "x" * 5000}]
    assert collector.keys == {"Bearer secret"}


def test_a_busy_collector_is_tried_again_later(collector: Collector) -> None:
    collector.statuses = [503]
    with (
        closing(HttpSender(collector.url)) as send,
        pytest.raises(NotDeliveredError, match="503"),
    ):
        send([b"{}"])


def test_a_rejected_event_is_not_sent_again(
    collector: Collector, caplog: pytest.LogCaptureFixture
) -> None:
    collector.statuses = [422]
    with closing(HttpSender(collector.url)) as send:
        send([b'{"n": 1}', b'{"n": 2}'])
    assert collector.events == [{"n": 1}, {"n": 2}]
    assert "rejected an event (422)" in caplog.text


@pytest.mark.parametrize("url", ["ftp://x", "localhost:5000", ""])
def test_an_invalid_url_is_an_error(url: str) -> None:
    with pytest.raises(InvalidRequestError, match="DOWNRIVER_URL"):
        HttpSender(url)
