"""A real SMTP server in a thread. It records the received mails."""

from __future__ import annotations

import base64
import socketserver
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator


class Mail(NamedTuple):
    sender: str
    to: list[str]
    text: str
    login: str


class Postbox(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Session)
        self.mails: list[Mail] = []

    @property
    def port(self) -> int:
        return int(self.server_address[1])


class _Session(socketserver.StreamRequestHandler):
    server: Postbox

    def handle(self) -> None:
        self.sender, self.to, self.login = "", [], ""
        self._reply(b"220 postbox")
        while line := self.rfile.readline():
            command, _, rest = line.decode().strip().partition(" ")
            if command.upper() == "QUIT":
                self._reply(b"221 bye")
                return
            self._handle_command(command.upper(), rest)

    def _handle_command(self, command: str, rest: str) -> None:
        match command:
            case "EHLO":
                self._reply(b"250-postbox")
                self._reply(b"250 AUTH PLAIN")
            case "AUTH":
                self.login = base64.b64decode(rest.partition(" ")[2]).decode().replace("\0", " ")
                self._reply(b"235 welcome")
            case "MAIL":
                self.sender = rest.partition(":")[2].strip("<> ").partition(">")[0]
                self._reply(b"250 ok")
            case "RCPT":
                self.to.append(rest.partition(":")[2].strip("<> "))
                self._reply(b"250 ok")
            case "DATA":
                self._reply(b"354 go on")
                lines: list[str] = []
                while (line := self.rfile.readline().decode().rstrip("\r\n")) != ".":
                    lines.append(line)
                self.server.mails.append(
                    Mail(self.sender, self.to, "\n".join(lines), self.login.strip())
                )
                self._reply(b"250 taken")
            case _:
                self._reply(b"250 ok")

    def _reply(self, line: bytes) -> None:
        self.wfile.write(line + b"\r\n")


@contextmanager
def running_postbox() -> Iterator[Postbox]:
    with Postbox() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join(5)
