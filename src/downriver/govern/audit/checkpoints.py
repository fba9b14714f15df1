"""Signed checkpoints of the log's hash chain, and the places where they are kept.

A checkpoint outside the store later proves that the log was not cut or rewritten: its entry must
still have the same chain value.
"""

from __future__ import annotations

import base64
import binascii
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from downriver.errors import InvalidRequestError
from downriver.govern.http_post import HttpPost, PostFailedError
from downriver.govern.signing_key import is_signed, parse_public_key

if TYPE_CHECKING:
    from collections.abc import Iterable

    from downriver.govern.signing_key import SigningKey

CHECKPOINT_FORMAT = "downriver-checkpoint/1"
GIT_FILE = "downriver-checkpoints.jsonl"
_GIT = "git:"
_TIMEOUT = 30  # seconds
_CHAIN_BYTES = 32
_LARGEST = 64 * 2**20


class Checkpoint(msgspec.Struct, kw_only=True, frozen=True):
    """The head of a log at a time: how many entries, and the hash that covers all of them."""

    format: str
    entries: int
    chain: str
    at: str
    key: str
    signature: str

    def signed_content(self) -> bytes:
        """Return the bytes that the signature covers."""
        return msgspec.json.encode([self.format, self.entries, self.chain, self.at, self.key])


def sign_checkpoint(entries: int, chain: bytes, at: str, key: SigningKey) -> Checkpoint:
    """Return a signed checkpoint."""
    unsigned = Checkpoint(
        format=CHECKPOINT_FORMAT,
        entries=entries,
        chain=chain.hex(),
        at=at,
        key=key.public,
        signature="",
    )
    signature = base64.b64encode(key.sign(unsigned.signed_content())).decode()
    return msgspec.structs.replace(unsigned, signature=signature)


def check_checkpoints(checkpoints: Iterable[Checkpoint], key: str | None) -> dict[int, bytes]:
    """Return the chain value of each entry in checkpoints, or raise if a checkpoint is invalid.

    Without `key`, all checkpoints must be signed by the key of the first one.
    """
    wanted = None if key is None else parse_public_key(key, "key")
    anchors: dict[int, bytes] = {}
    for number, checkpoint in enumerate(checkpoints, 1):
        stated = parse_public_key(checkpoint.key, f"checkpoint {number}")
        wanted = stated if wanted is None else wanted
        reason = None if stated == wanted else "is signed by another key"
        chain = _parse_chain(checkpoint, number)
        if reason is None and not _is_valid(checkpoint, stated):
            reason = "was altered: its signature does not match"
        if reason is None and anchors.setdefault(checkpoint.entries, chain) != chain:
            reason = f"contradicts an earlier one about entry {checkpoint.entries}"
        if reason is not None:
            raise InvalidRequestError(f"checkpoint {number}", reason)
    if not anchors:
        raise InvalidRequestError("checkpoints", "there is no checkpoint")
    return anchors


def _parse_chain(checkpoint: Checkpoint, number: int) -> bytes:
    try:
        chain = bytes.fromhex(checkpoint.chain)
    except ValueError:
        chain = b""
    if len(chain) != _CHAIN_BYTES or checkpoint.entries < 0:
        raise InvalidRequestError(
            f"checkpoint {number}", "does not contain a valid entry number and chain"
        )
    return chain


def _is_valid(checkpoint: Checkpoint, key: bytes) -> bool:
    try:
        signature = base64.b64decode(checkpoint.signature, validate=True)
    except (binascii.Error, ValueError):
        return False
    return is_signed(checkpoint.signed_content(), signature, key)


def parse_checkpoints(content: bytes, place: str) -> list[Checkpoint]:
    """Return the checkpoints of a file: one JSON object a line."""
    checkpoints = []
    for number, line in enumerate(content.splitlines(), 1):
        if not line.strip():
            continue
        try:
            checkpoints.append(msgspec.json.decode(line, type=Checkpoint))
        except msgspec.DecodeError as exc:
            raise InvalidRequestError(place, f"line {number} is not a checkpoint: {exc}") from exc
    return checkpoints


def read_checkpoints(place: str) -> list[Checkpoint]:
    """Return the checkpoints of a file, or of the last commit of `git:PATH`."""
    if place.startswith(_GIT):
        folder, file = _git_file(place)
        content = _git(folder, "show", f"HEAD:./{file}")
    else:
        path = Path(place)
        try:
            if path.stat().st_size > _LARGEST:
                raise InvalidRequestError(place, f"is larger than {_LARGEST >> 20} MB")
            content = path.read_bytes()
        except OSError as exc:
            raise InvalidRequestError(place, f"cannot be read: {exc.strerror}") from exc
    return parse_checkpoints(content, place)


def check_place(place: str) -> None:
    """Raise if checkpoints cannot be sent to a place: a file, `git:PATH` or an http(s) URL."""
    if place.startswith(_GIT):
        _git(_git_file(place)[0], "rev-parse", "--show-toplevel")
    elif "://" in place:
        parts = urlsplit(place)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise InvalidRequestError("to", f"{place!r} is not a file, git:PATH or an http(s) URL")
    elif not Path(place).absolute().parent.is_dir():
        raise InvalidRequestError("to", f"there is no folder {Path(place).absolute().parent}")


def keep_checkpoint(checkpoint: Checkpoint, place: str) -> None:
    """Append a checkpoint to a file, commit it to a Git repository, or post it to a URL."""
    check_place(place)
    line = msgspec.json.encode(checkpoint) + b"\n"
    if place.startswith(_GIT):
        folder, file = _git_file(place)
        _append(folder / file, line)
        _git(folder, "add", "--", file)
        subject = f"Checkpoint of {checkpoint.entries} log entries"
        _git(folder, "commit", "--quiet", "-m", subject, "--", file)
    elif "://" in place:
        _post(place, line)
    else:
        _append(Path(place), line)


def _git_file(place: str) -> tuple[Path, str]:
    """Return the folder and the file name in `git:PATH`."""
    path = Path(place.removeprefix(_GIT)).expanduser()
    return (path, GIT_FILE) if path.is_dir() else (path.parent, path.name)


def _git(folder: Path, *arguments: str) -> bytes:
    try:
        done = subprocess.run(  # noqa: S603 — no shell
            ["git", "-C", str(folder), *arguments],  # noqa: S607 — the user's git
            capture_output=True,
            timeout=_TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as exc:
        raise InvalidRequestError("git", f"cannot be run in {folder}: {exc}") from exc
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip() or f"exit code {done.returncode}"
        raise InvalidRequestError("git", f"{folder}: {reason}")
    return done.stdout


def _append(path: Path, line: bytes) -> None:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(descriptor, line)  # one write: two processes do not mix their lines
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as exc:
        raise InvalidRequestError("to", f"{path}: {exc.strerror}") from exc


def _post(url: str, body: bytes) -> None:
    try:
        HttpPost(url, _TIMEOUT).send(body)
    except PostFailedError as exc:
        parts = urlsplit(url)
        shown = parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl()
        raise InvalidRequestError("to", f"{shown}: {exc}") from exc
