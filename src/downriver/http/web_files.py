"""The files of the web UI, which the build writes into the package.

A path is looked up in a list of the files that exist and never joined to a folder, so that no
request reaches another file. A page of the UI gets `index.html`. Any other path is a 404: for a
browser with `index.html`, which shows the page "not found", else as JSON.
"""

from __future__ import annotations

import mimetypes
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from starlette.types import Receive, Scope, Send

FOLDER = Path(__file__).parent / "web"
_INDEX = "index.html"
PAGES = frozenset(
    {"", "lineage", "change", "verdicts", "trust", "ask", "settings", "entity", "run"}
)
_RESERVED = re.compile(r"/(v1|api|mcp|healthz|readyz|metrics|openapi\.json)(/|$)")
_HASHED = "assets/"  # the build puts a hash into the name of each file there
_FOREVER = "public, max-age=31536000, immutable"
_NO_CACHE = "no-cache"
_ENCODINGS = {"br": ".br", "gzip": ".gz"}  # in order of preference
_TYPES = {".js": "text/javascript", ".webmanifest": "application/manifest+json"}
_TEXTS = ("text/", "image/svg+xml", "application/json", "application/manifest+json")
_NOT_BUILT = b"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Downriver</title></head><body>
<h1>The web UI is not built</h1>
<p>Run <code>make setup</code> or <code>python web/build.py</code> in the repository of Downriver,
then load this page again. A released wheel contains the web UI.</p>
<p>The API is available: <a href="/openapi.json">/openapi.json</a>.</p>
</body></html>
"""


class _WebFile(NamedTuple):
    """A file with the encodings in which it exists."""

    path: Path
    media_type: str
    immutable: bool
    encodings: Mapping[str, Path]


class WebFiles:
    """Answers requests that no route answers: with a file of the UI, or with its first page."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._folder = folder
        self._files: dict[str, _WebFile] = {}
        self._built_at = -1

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that no route answers."""
        request = Request(scope, receive)
        path = scope["path"]
        if request.method not in ("GET", "HEAD") or _RESERVED.match(path):
            raise HTTPException(404)
        response = await run_in_threadpool(self._response, path.lstrip("/"), request)
        await response(scope, receive, send)

    def _response(self, name: str, request: Request) -> Response:
        files = self._list_files()
        if _INDEX not in files:
            return Response(_NOT_BUILT, 503, media_type="text/html")
        if name in files:
            return _send(files[name], request)
        if name.rstrip("/") in PAGES:
            return _send(files[_INDEX], request)
        # A script or style gets no HTML, which a browser would read as one.
        if name.startswith(_HASHED) or "text/html" not in request.headers.get("accept", ""):
            raise HTTPException(404)
        return _send(files[_INDEX], request, status=404)

    def _list_files(self) -> dict[str, _WebFile]:
        """Return the files by name. They are listed again after each build of the UI."""
        try:
            built_at = (self._folder / _INDEX).stat().st_mtime_ns
        except OSError:
            return {}
        if built_at != self._built_at:
            self._files = dict(_scan(self._folder))
            self._built_at = built_at
        return self._files


def _scan(folder: Path) -> Iterator[tuple[str, _WebFile]]:
    paths = {
        path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()
    }
    for name, path in paths.items():
        if path.suffix in _ENCODINGS.values() or path.name.startswith("."):
            continue
        kind = _TYPES.get(path.suffix) or mimetypes.guess_type(name)[0]
        encodings = {
            encoding: paths[name + suffix]
            for encoding, suffix in _ENCODINGS.items()
            if name + suffix in paths
        }
        yield (
            name,
            _WebFile(path, kind or "application/octet-stream", name.startswith(_HASHED), encodings),
        )


def _send(file: _WebFile, request: Request, *, status: int = 200) -> Response:
    accepted = parse_accept_encoding(request.headers.get("accept-encoding", ""))
    encoding = next((name for name in file.encodings if name in accepted), None)
    path = file.path if encoding is None else file.encodings[encoding]
    kind = file.media_type
    charset = "; charset=utf-8" if kind.startswith(_TEXTS) and "charset" not in kind else ""
    stat = path.stat()
    headers = {
        "Cache-Control": _FOREVER if file.immutable else _NO_CACHE,
        "Content-Type": kind + charset,
        "ETag": f'"{stat.st_mtime_ns:x}-{stat.st_size:x}"',
        "Vary": "Accept-Encoding",
    }
    if status == 200 and request.headers.get("if-none-match") == headers["ETag"]:
        return Response(status_code=304, headers=headers)
    if encoding is not None:
        headers["Content-Encoding"] = encoding
    return Response(path.read_bytes(), status, headers)


def parse_accept_encoding(header: str) -> set[str]:
    """Return the encodings that a client accepts: those without the weight 0."""
    accepted = set()
    for part in header.lower().split(","):
        name, _, weight = part.strip().partition(";")
        if name.strip() and not re.fullmatch(r"\s*q\s*=\s*0(\.0*)?\s*", weight):
            accepted.add(name.strip())
    return accepted
