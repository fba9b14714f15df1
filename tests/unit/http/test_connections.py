"""Clients that send slowly, too much or not to the end, over real sockets."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.server import free_port, wait_until_up
from tests.unit.http.test_app import run_event

from downriver.service import Lineage

if TYPE_CHECKING:
    from collections.abc import Iterator

SECONDS = "2"  # for headers and for parts of a body
QUICK = {"DOWNRIVER_HEADER_SECONDS": SECONDS, "DOWNRIVER_IDLE_SECONDS": SECONDS}
MB = 2**20


class Server:
    """A server in a process of its own, and what it logs."""

    def __init__(self, store: Path, settings: dict[str, str]) -> None:
        self.port = free_port()
        self.clients: list[socket.socket] = []
        self._log = store.with_suffix(".log")
        command = [sys.executable, "-m", "downriver", "serve", "--port", str(self.port)]
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [*command, "--store", str(store)], env={**os.environ, **settings}, stderr=log
            )
        wait_until_up(f"http://127.0.0.1:{self.port}", self.process)

    @property
    def log(self) -> str:
        return self._log.read_text()

    def memory_mb(self) -> int:
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", text)[1]) // 1024

    def connect(self, *parts: bytes) -> socket.socket:
        client = socket.create_connection(("127.0.0.1", self.port), timeout=30)
        self.clients.append(client)
        for part in parts:
            client.sendall(part)
        return client

    def is_healthy(self) -> bool:
        url = f"http://127.0.0.1:{self.port}/healthz"
        with urllib.request.urlopen(url, timeout=30) as answer:
            return answer.status == 200


@contextmanager
def served(folder: Path, **settings: str) -> Iterator[Server]:
    server = Server(folder / "store", settings)
    try:
        yield server
    finally:
        for client in server.clients:
            client.close()
        server.process.terminate()
        server.process.wait(20)


def answer_of(client: socket.socket) -> tuple[int, dict]:
    """Read until the server closes the connection. Return the status and the body."""
    received = b""
    while part := client.recv(65536):
        received += part
    head, _, body = received.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body) if body else {}


def post(size: int, *headers: str) -> bytes:
    lines = ["POST /api/v1/lineage HTTP/1.1", "Host: localhost", f"Content-Length: {size}"]
    return "\r\n".join([*lines, *headers, "", ""]).encode()


def event_of(size: int) -> bytes:
    body = json.dumps(run_event("job", ["raw"], ["orders"])).encode()
    return body[:-1] + b" " * (size - len(body)) + b"}"


def test_slow_clients_are_answered_408_and_closed(tmp_path: Path) -> None:
    with served(tmp_path, **QUICK) as server:
        clients = [server.connect(b"GET /healthz HTTP/1.1\r\nHost: ") for _ in range(75)]
        clients += [server.connect(post(1000), b"{") for _ in range(70)]
        clients += [server.connect() for _ in range(5)]
        assert server.is_healthy()
        answers = [answer_of(client) for client in clients]
        assert {status for status, _ in answers} == {408}
        assert {body["error"] for _, body in answers} == {"RequestTimeout"}
        assert "Traceback" not in server.log


def test_a_client_that_sends_a_byte_now_and_then_is_closed(tmp_path: Path) -> None:
    with served(tmp_path, **QUICK, DOWNRIVER_BODY_SECONDS="4") as server:
        slow_headers = server.connect(b"GET /healthz HTTP/1.1\r\n")
        slow_body = server.connect(post(1000))
        deadline = time.monotonic() + 60
        open_clients = {slow_headers: b"A", slow_body: b"{"}
        for client in open_clients:
            client.setblocking(False)
        while open_clients and time.monotonic() < deadline:
            for client, byte in list(open_clients.items()):
                try:
                    client.send(byte)
                    if b"408" in client.recv(4096):
                        del open_clients[client]
                except BlockingIOError:
                    pass
            time.sleep(0.3)
        assert not open_clients


def test_unfinished_bodies_take_no_more_memory_than_is_set(tmp_path: Path) -> None:
    with served(tmp_path, DOWNRIVER_BODIES_MB="64") as server:
        before = server.memory_mb()
        clients = []
        body = event_of(31 * MB)
        for _ in range(12):
            client = server.connect(post(len(body)))
            clients.append(client)
            client.settimeout(5)
            try:
                client.sendall(body[:-1])
            except OSError:  # refused before the end
                continue
        assert server.is_healthy()
        # The bodies, one copy while a body is joined, and what the allocator keeps.
        assert server.memory_mb() - before < 64 * 2 + 60
        for client in clients:
            client.close()
        deadline = time.monotonic() + 30
        while server.log.count("not complete") < 2 and time.monotonic() < deadline:
            time.sleep(0.1)
        assert "Traceback" not in server.log
        client = server.connect(post(len(body), "Connection: close"), body)
        assert answer_of(client)[0] == 201  # the bodies of clients that left are free again


def test_a_body_without_a_key_is_not_read(tmp_path: Path) -> None:
    with Lineage.open(str(tmp_path / "store")) as lineage:
        lineage.admin.create_key("writer", "writer")
    with served(tmp_path) as server:
        first = server.connect(post(1))  # loads what a refusal needs
        assert first.recv(65536).startswith(b"HTTP/1.1 401")
        before = server.memory_mb()
        clients = [server.connect(post(31 * MB)) for _ in range(12)]
        for client in clients:
            assert client.recv(65536).startswith(b"HTTP/1.1 401")
            with pytest.raises((BrokenPipeError, ConnectionResetError)):
                client.sendall(b" " * (30 * MB))
        # Far less than the 372 MB of the bodies; the server may still load its graph meanwhile.
        assert server.memory_mb() - before < 120


@pytest.mark.parametrize(
    "headers",
    [
        [b"X-Long: ", *[b"x" * 65536] * 16],
        [b"X-Short: 1\r\n" * 100_000],
        [b"X-Short: 1\r\n" * 101, b"\r\n"],
        [b"X-Middle: " + b"x" * 1000 + b"\r\n"] * 70 + [b"\r\n"],
    ],
    ids=["one of 1 MB", "100,000 small ones", "one too many", "70 of 1 KB"],
)
def test_too_many_headers_are_answered_431(tmp_path: Path, headers: list[bytes]) -> None:
    with served(tmp_path) as server:
        client = server.connect(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n")
        try:
            for part in headers:
                client.sendall(part)
            status, body = answer_of(client)
            assert (status, body["error"]) == (431, "HeadersTooLarge")
        except (BrokenPipeError, ConnectionResetError):
            pass  # closed while it was sending
        assert server.is_healthy()
        assert server.log.count("connection from 127.0.0.1 closed") == 1


def test_trailers_count_as_headers(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        body = json.dumps(run_event("job", ["raw"], ["orders"])).encode()
        head = post(0).replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
        chunk = b"%x\r\n%s\r\n0\r\n" % (len(body), body)
        client = server.connect(head, chunk, b"X-Trailer: 1\r\n" * 1000)
        assert answer_of(client)[0] == 431


def test_a_disconnect_is_one_line_in_the_log(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        for _ in range(5):
            server.connect(post(1000), b"{").close()
        deadline = time.monotonic() + 30
        while server.log.count("not complete") < 5 and time.monotonic() < deadline:
            time.sleep(0.05)
        lines = [line for line in server.log.splitlines() if "not complete" in line]
        assert len(lines) == 5
        assert "POST '/api/v1/lineage' of 127.0.0.1 not complete" in lines[0]
        assert "Traceback" not in server.log


def test_connections_beyond_the_limit_get_503(tmp_path: Path) -> None:
    with served(tmp_path, DOWNRIVER_MAX_CONNECTIONS="10") as server:
        held = [server.connect() for _ in range(10)]
        request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        assert server.connect(request).recv(4096).startswith(b"HTTP/1.1 503")
        for client in held:
            client.close()
        time.sleep(0.2)
        assert server.connect(request).recv(4096).startswith(b"HTTP/1.1 200")


def test_a_client_that_does_not_read_its_answer_is_closed(tmp_path: Path) -> None:
    with served(tmp_path, **QUICK) as server:
        client = server.connect()
        client.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 400)
        deadline = time.monotonic() + 60
        while "read no answer" not in server.log and time.monotonic() < deadline:
            time.sleep(0.1)
        assert "the client read no answer for 2 s" in server.log
