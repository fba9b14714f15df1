"""A server with OpenAI's chat API that returns the replies prepared by a test."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class TextReply(NamedTuple):
    """Answer with a text."""

    text: str


class ToolReply(NamedTuple):
    """Answer with a call of a tool."""

    tool: str
    arguments: dict[str, Any]


class ErrorReply(NamedTuple):
    """Answer with an error."""

    status: int
    message: str


Reply = TextReply | ToolReply | ErrorReply


class FakeOpenAI:
    """Records its requests. The last reply is repeated if there are no more."""

    def __init__(self, replies: Sequence[Reply], tokens: int) -> None:
        self._replies = list(replies)
        self.tokens = tokens
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.url = ""

    def next_reply(self) -> Reply:
        return self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]

    @property
    def offered(self) -> dict[str, dict[str, Any]]:
        """The tools of the last request, by name."""
        return {t["function"]["name"]: t["function"] for t in self.requests[-1].get("tools", [])}

    def results(self) -> list[Any]:
        """The results of tools in the last request."""
        return [m["content"] for m in self.requests[-1]["messages"] if m["role"] == "tool"]


@contextmanager
def fake_openai(*replies: Reply, tokens: int = 10) -> Iterator[FakeOpenAI]:
    """Run the server. Its `url` is the value for OPENAI_BASE_URL."""
    fake = FakeOpenAI(replies, tokens)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(fake))
    fake.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler_of(fake: FakeOpenAI) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            assert self.path == "/v1/chat/completions", self.path
            fake.requests.append(body)
            fake.keys.append(self.headers.get("authorization", ""))
            reply = fake.next_reply()
            if isinstance(reply, ErrorReply):
                self._send(
                    reply.status,
                    "application/json",
                    json.dumps({"error": {"message": reply.message, "type": "x", "code": None}}),
                )
            elif body.get("stream"):
                events = [f"data: {json.dumps(c)}\n\n" for c in _chunks(fake, reply, body)]
                self._send(200, "text/event-stream", "".join([*events, "data: [DONE]\n\n"]))
            else:
                self._send(200, "application/json", json.dumps(_whole(fake, reply, body)))

        def _send(self, status: int, kind: str, body: str) -> None:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body.encode())))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *args: object) -> None:
            pass

    return Handler


def _head(body: dict[str, Any], kind: str) -> dict[str, Any]:
    return {"id": "chat-1", "object": kind, "created": 1, "model": body["model"]}


def _usage(fake: FakeOpenAI) -> dict[str, int]:
    return {
        "prompt_tokens": fake.tokens,
        "completion_tokens": fake.tokens,
        "total_tokens": 2 * fake.tokens,
    }


def _call(fake: FakeOpenAI, reply: ToolReply) -> dict[str, Any]:
    function = {"name": reply.tool, "arguments": json.dumps(reply.arguments)}
    return {"id": f"call-{len(fake.requests)}", "type": "function", "function": function}


def _whole(fake: FakeOpenAI, reply: TextReply | ToolReply, body: dict[str, Any]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": None}
    if isinstance(reply, ToolReply):
        message["tool_calls"] = [_call(fake, reply)]
    else:
        message["content"] = reply.text
    finish = "tool_calls" if isinstance(reply, ToolReply) else "stop"
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return {**_head(body, "chat.completion"), "choices": [choice], "usage": _usage(fake)}


def _chunks(
    fake: FakeOpenAI, reply: TextReply | ToolReply, body: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    head = _head(body, "chat.completion.chunk")

    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    yield chunk({"role": "assistant", "content": ""})
    if isinstance(reply, ToolReply):
        call = _call(fake, reply)
        arguments = call["function"]["arguments"]
        half = len(arguments) // 2
        opening = {**call["function"], "arguments": arguments[:half]}
        yield chunk({"tool_calls": [{**call, "index": 0, "function": opening}]})
        rest = {"index": 0, "function": {"arguments": arguments[half:]}}
        yield chunk({"tool_calls": [rest]})
        yield chunk({}, "tool_calls")
    else:
        for word in reply.text.split(" "):
            yield chunk({"content": f"{word} "})
        yield chunk({}, "stop")
    yield {**head, "choices": [], "usage": _usage(fake)}
