"""A server that records requests and gives prepared answers, for clients of other systems."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class Recorded(NamedTuple):
    """A received request. Names of headers are in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


class Recorder(NamedTuple):
    """The URL of the server, and the requests so far."""

    url: str
    requests: list[Recorded]


@contextmanager
def recording_server(answers: Mapping[str, object]) -> Iterator[Recorder]:
    """Serve JSON by path; any other path is 404."""
    requests: list[Recorded] = []

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length)
            headers = {name.lower(): value for name, value in self.headers.items()}
            content = json.loads(body) if body else None
            requests.append(Recorded(self.command, self.path, headers, content))
            found = self.path in answers
            answer = json.dumps(answers.get(self.path, {"message": "not found"})).encode()
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_GET = do_POST = do_PUT = answer  # noqa: N815 — names of the standard library

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield Recorder(f"http://127.0.0.1:{server.server_port}", requests)
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
