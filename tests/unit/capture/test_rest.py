"""Requests to the REST APIs of other systems, with real servers."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from downriver.capture.rest import RestApi

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def _server(location: str = "") -> Iterator[tuple[str, list[str | None]]]:
    """Run a server that answers `{}`, or redirects. Yield its URL and the keys that it received."""
    keys: list[str | None] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            keys.append(self.headers.get("Authorization"))
            self.send_response(302 if location else 200)
            if location:
                self.send_header("Location", location)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", keys
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(("key", "sent"), [("k", "Bearer k"), ("u:p", "Basic dTpw")])
def test_a_key_is_sent_to_the_api_and_not_to_the_target_of_a_redirect(key: str, sent: str) -> None:
    with _server() as (other, other_keys), _server(other) as (url, keys):
        assert RestApi(url, key).get("/entities") == {}
    assert keys == [sent]
    assert other_keys == [None]
