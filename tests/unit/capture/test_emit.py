"""Events of a job are sent without an exception, a delay or a loss."""

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
from downriver.capture.emit.http_sender import CollectorEndpoint, NotDeliveredError
from downriver.errors import InvalidRequestError, SpoolFullError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def sender(url: str, key: str = "") -> HttpSender:
    return HttpSender(url, key, reject=lambda event, reason: None)


class Sink:
    """Accepts events, or fails on request."""

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
    assert spool.drain(lambda events: None) == 0  # the attempt may not have ended yet
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


def test_a_full_spool_drops_further_events_and_counts_them(
    spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOWNRIVER_SPOOL_MB", "1")
    spool.add([b"x" * 2**19])
    with pytest.raises(SpoolFullError, match=r"2 events were dropped.*downriver spool flush"):
        spool.add([b"y" * 2**19, b"z"])
    assert spool.state() == (1, 1, 2**19 + 1, 2, 0)
    taken: list[object] = []
    spool.drain(taken.extend)
    spool.add([b"y" * 2**19])  # there is room again
    assert spool.state() == (1, 1, 2**19 + 1, 2, 0)


ENDPOINT = "/base/api/v1/lineage"


class Collector(HTTPServer):
    """A collector that answers with the given statuses."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.statuses: list[int] = []
        self.events: list[object] = []
        self.keys: set[str | None] = set()
        self.redirects: dict[str, tuple[int, str]] = {}  # path -> status, Location
        self.paths: list[str] = []

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
        self.server.paths.append(self.path)
        if self.path in self.server.redirects:
            status, location = self.server.redirects[self.path]
            self.send_response(status)
            self.send_header("Location", location)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.server.events.append(json.loads(body))
        self.server.keys.add(self.headers["Authorization"])
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
    with closing(sender(collector.url, "secret")) as send:
        send([b'{"n": 1}', json.dumps({"n": "x" * 5000}).encode()])
    assert collector.events == [{"n": 1}, {"n": "x" * 5000}]
    assert collector.keys == {"Bearer secret"}
    assert set(collector.paths) == {ENDPOINT}


def test_a_busy_collector_is_tried_again_later(collector: Collector) -> None:
    collector.statuses = [503]
    with (
        closing(sender(collector.url)) as send,
        pytest.raises(NotDeliveredError, match="503"),
    ):
        send([b"{}"])


def test_a_rejected_event_is_kept_and_not_sent_again(
    collector: Collector, spool: Spool, caplog: pytest.LogCaptureFixture
) -> None:
    collector.statuses = [422]
    with closing(HttpSender(collector.url, reject=spool.reject)) as send:
        spool.add([b'{"n": 1}', b'{"n": 2}'])
        assert spool.drain(send) == 2
        assert collector.events == [{"n": 1}, {"n": 2}]
        assert "rejected an event (422)" in caplog.text
        assert spool.state() == (0, 0, 0, 0, 1)
        (kept,) = spool.rejected()
        assert (kept.event, kept.reason) == ('{"n": 1}', "422: ")
        assert spool.drain(send) == 0
        assert spool.retry_rejected() == 1
        assert spool.drain(send) == 1
    assert collector.events[2:] == [{"n": 1}]
    assert spool.state() == (0, 0, 0, 0, 0)


def test_rejected_events_leave_room_for_unsent_ones(
    spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOWNRIVER_SPOOL_MB", "1")
    for _ in range(10):
        spool.reject(b"x" * 10_000, "400: too long")
    with pytest.raises(SpoolFullError):
        spool.reject(b"x" * 10_000, "400: too long")
    state = spool.state()
    assert (state.dropped, state.rejected) == (1, 10)
    spool.add([b"y" * 2**19])
    assert spool.state().events == 1


@pytest.mark.parametrize("status", [307, 308])
def test_a_redirect_that_keeps_the_method_is_followed(collector: Collector, status: int) -> None:
    collector.redirects = {ENDPOINT: (status, "/moved"), "/moved": (status, "/moved/again?x=1")}
    with closing(sender(collector.url, "secret")) as send:
        send([b'{"n": 1}', b'{"n": 2}'])
    assert collector.events == [{"n": 1}, {"n": 2}]
    assert collector.keys == {"Bearer secret"}
    tried_once = [ENDPOINT, "/moved", "/moved/again?x=1"]
    again = ["/moved/again?x=1"] if status == 308 else tried_once  # 308 is permanent
    assert collector.paths == tried_once + again


@pytest.mark.parametrize(
    ("status", "location"),
    [
        (301, "/moved"),
        (302, "/moved"),
        (303, "/moved"),
        (304, "/moved"),
        (300, ""),
        (307, ""),
        (308, "mailto:somebody"),
        (302, "https://elsewhere.example/api/v1/lineage"),
    ],
)
def test_another_redirect_is_not_taken_for_a_delivery(
    collector: Collector, status: int, location: str
) -> None:
    collector.redirects = {ENDPOINT: (status, location)}
    with (
        closing(sender(collector.url)) as send,
        pytest.raises(NotDeliveredError, match=rf"\({status}\).*set DOWNRIVER_URL"),
    ):
        send([b"{}"])
    assert collector.events == []


def test_a_loop_of_redirects_ends(collector: Collector) -> None:
    collector.redirects = {ENDPOINT: (307, ENDPOINT)}
    with (
        closing(sender(collector.url)) as send,
        pytest.raises(NotDeliveredError, match="307"),
    ):
        send([b"{}"])
    assert 1 < len(collector.paths) < 10


def test_the_key_is_not_sent_to_another_host(collector: Collector) -> None:
    collector.redirects = {
        ENDPOINT: (307, f"http://localhost:{collector.server_port}/elsewhere"),
    }
    with closing(sender(collector.url, "secret")) as send:
        send([b'{"n": 1}'])
    assert collector.events == [{"n": 1}]
    assert collector.keys == {None}


@pytest.mark.parametrize(
    ("configured", "location", "followed"),
    [
        ("http://lineage.example", "https://lineage.example/api/v1/lineage", True),
        ("http://lineage.example:5000", "https://lineage.example/x", True),
        ("http://lineage.example", "https://other.example/api/v1/lineage", False),
        ("https://lineage.example", "http://lineage.example/api/v1/lineage", False),
    ],
)
def test_a_301_is_followed_only_to_https_of_the_same_host(
    configured: str, location: str, followed: bool
) -> None:
    endpoint = CollectorEndpoint.of(configured)
    assert endpoint is not None
    assert (endpoint.redirected(301, location) is not None) == followed


def test_redirected_events_are_spooled(collector: Collector, spool: Spool) -> None:
    collector.redirects = {ENDPOINT: (302, "/login")}
    with closing(sender(collector.url)) as send:
        emitter = Emitter(send, spool)
        emitter.emit(b'{"n": 1}', b'{"n": 2}')
        assert emitter.flush()
        assert spool.state().events == 2
        collector.redirects = {}
        assert spool.drain(send) == 2
    assert collector.events == [{"n": 1}, {"n": 2}]


@pytest.mark.parametrize("url", ["ftp://x", "localhost:5000", ""])
def test_an_invalid_url_is_an_error(url: str) -> None:
    with pytest.raises(InvalidRequestError, match="DOWNRIVER_URL"):
        sender(url)
