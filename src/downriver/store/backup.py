"""A store in one file: its log with the hash chain, its API keys, audit log, findings and alerts.

The catalog is not part of it, because it is folded from the log again. So a backup of a SQLite
store can be restored to PostgreSQL, and the reverse.
"""

from __future__ import annotations

import contextlib
import os
import struct
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec
import zstandard

from downriver.errors import InvalidRequestError, StoreError
from downriver.store.port import LogEntry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from downriver.store.catalog.reader import CatalogReader
    from downriver.store.hash_chain import Verification
    from downriver.store.port import Row

_FORMAT = "downriver backup 1"
_LENGTH = struct.Struct(">I")
_LARGEST_FRAME = 2**30
# The tables that are not folded from the log, in the order in which they are written.
TABLES: dict[str, tuple[str, ...]] = {
    "api_keys": (
        "name",
        "role",
        "digest",
        "created_at",
        "revoked_at",
        "namespaces",
        "expires_at",
    ),
    "audit": (
        "id",
        "actor",
        "action",
        "target",
        "detail",
        "count",
        "first_at",
        "last_at",
        "first_seq",
        "last_seq",
    ),
    "findings": (
        "id",
        "kind",
        "entity",
        "severity",
        "status",
        "first_at",
        "changed_at",
        "body",
    ),
    "alerts": ("id", "channel", "due_at", "attempts", "error", "body"),
    "watch_state": ("name", "body"),
    "verdicts": ("id", "at", "decision", "body"),
    "triggered": ("id", "trigger_name", "target", "state", "due_at", "body"),
}


class BackupEnd(msgspec.Struct, tag="end"):
    """The last part of a backup: the length and head of the log. Without it, the file is cut."""

    entries: int
    head: str


class BackupRow(msgspec.Struct, tag="row"):
    """A row of a table that is not folded from the log."""

    table: str
    values: list[Any]


class BackupEntry(msgspec.Struct, tag="log"):
    """An entry of the log. Its body is compressed, as the log stores it."""

    seq: int
    digest: bytes
    received_at: int
    chain: bytes
    body: bytes


class BackupStart(msgspec.Struct, tag="start"):
    """The first part of a backup."""

    format: str


BackupPart = BackupStart | BackupEntry | BackupRow | BackupEnd
_decoder: msgspec.msgpack.Decoder[BackupPart] = msgspec.msgpack.Decoder(BackupPart)


def write_backup(
    reader: CatalogReader,
    verify: Callable[[Iterable[LogEntry]], Verification],
    path: Path,
) -> Verification:
    """Write one consistent view of a store to a file, and verify the log on the way.

    The file appears under its name when it is complete, and only its owner can read it.
    """
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with _create(unfinished) as file:
            compressor = zstandard.ZstdCompressor(level=3)
            with compressor.stream_writer(file, closefd=False) as stream:
                verified = _write_parts(reader, verify, stream)
            file.flush()
            os.fsync(file.fileno())
        if not verified.ok:
            raise StoreError(
                f"no backup was written, because the log is not intact: entry "
                f"{verified.altered_seq} {verified.reason}"
            )
        unfinished.replace(path)
    except OSError as exc:
        raise InvalidRequestError("FILE", f"{path}: {exc.strerror}") from exc
    finally:
        with contextlib.suppress(OSError):
            unfinished.unlink()
    return verified


def _create(path: Path) -> BinaryIO:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    return os.fdopen(descriptor, "wb")


def _write_parts(
    reader: CatalogReader, verify: Callable[[Iterable[LogEntry]], Verification], stream: Any
) -> Verification:
    def write(part: BackupPart) -> None:
        frame = msgspec.msgpack.encode(part)
        stream.write(_LENGTH.pack(len(frame)) + frame)

    def entries() -> Iterator[LogEntry]:
        for entry in reader.log.entries():
            write(
                BackupEntry(
                    seq=entry.seq,
                    digest=entry.digest,
                    received_at=entry.received_at,
                    chain=entry.chain,
                    body=entry.body,
                )
            )
            yield entry

    write(BackupStart(_FORMAT))
    verified = verify(entries())
    for table, columns in TABLES.items():
        for row in reader.rows_of(table, columns):
            write(BackupRow(table, [_plain(value) for value in row]))
    write(BackupEnd(verified.entries, verified.head))
    return verified


def _plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, (bytearray, memoryview)) else value


def read_backup(path: Path) -> Iterator[LogEntry | tuple[str, Row] | BackupEnd]:
    """Yield the log entries of a backup, the rows of its tables by name, and its end."""
    started = ended = False
    for part in _parts(path):
        if ended or started == isinstance(part, BackupStart):
            raise _damaged(path)
        match part:
            case BackupStart(format=found):
                started = True
                if found != _FORMAT:
                    raise InvalidRequestError("FILE", f"{path}: {found!r} is not supported")
            case BackupEntry():
                yield LogEntry(part.seq, part.digest, part.received_at, part.chain, part.body)
            case BackupRow():
                missing = len(TABLES.get(part.table, ())) - len(part.values)
                if missing < 0 or (missing and part.table != "api_keys"):
                    raise _damaged(path)
                # Keys of earlier versions have neither namespaces nor an expiry.
                yield part.table, (*part.values, *[None] * missing)
            case BackupEnd():
                ended = True
                yield part
    if not ended:
        raise _damaged(path)


def _parts(path: Path) -> Iterator[BackupPart]:
    try:
        with path.open("rb") as file:
            decompressor = zstandard.ZstdDecompressor()
            with decompressor.stream_reader(file, closefd=False) as stream:
                while header := _exactly(stream, _LENGTH.size):
                    (size,) = _LENGTH.unpack(header)
                    if size > _LARGEST_FRAME:
                        raise _damaged(path)
                    yield _decoder.decode(_exactly(stream, size))
    except OSError as exc:
        raise InvalidRequestError("FILE", f"{path}: {exc.strerror}") from exc
    except (zstandard.ZstdError, msgspec.MsgspecError, EOFError, struct.error) as exc:
        raise _damaged(path) from exc


def _exactly(stream: Any, size: int) -> bytes:
    parts: list[bytes] = []
    missing = size
    while missing and (part := stream.read(missing)):
        parts.append(part)
        missing -= len(part)
    if missing and missing < size:
        raise EOFError
    return b"".join(parts)


def _damaged(path: Path) -> InvalidRequestError:
    return InvalidRequestError("FILE", f"{path} is not a complete backup of a Downriver store")
