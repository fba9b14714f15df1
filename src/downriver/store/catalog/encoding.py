"""How values are encoded in rows, and rows made into values."""

from __future__ import annotations

import sys
import threading
from array import array
from itertools import chain
from typing import TYPE_CHECKING, Any

import msgspec
import zstandard

from downriver.model.facts import ColumnTransformation, EventRef, EvidenceRank, Span
from downriver.model.ids import DatasetId, JobId, NodeId, NodeKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from downriver.store.port import Row, SqlQueries

_MAGIC = b"\x28\xb5\x2f\xfd"
_WORTH_PACKING = 200
_per_thread = threading.local()  # zstd contexts are not thread-safe


def compress(raw: bytes) -> bytes:
    """Return the bytes to store: compressed, unless they are very short."""
    if len(raw) < _WORTH_PACKING:
        return raw
    packed: bytes = _compressor().compress(raw)
    return packed


def decompress(stored: bytes) -> bytes | None:
    """Return the original bytes, or None when the stored bytes are damaged."""
    if not stored.startswith(_MAGIC):
        return stored
    try:
        raw: bytes = _decompressor().decompress(stored)
    except zstandard.ZstdError:
        return None
    return raw


def _compressor() -> zstandard.ZstdCompressor:
    if not hasattr(_per_thread, "compressor"):
        _per_thread.compressor = zstandard.ZstdCompressor(level=1)
    compressor: zstandard.ZstdCompressor = _per_thread.compressor
    return compressor


def _decompressor() -> zstandard.ZstdDecompressor:
    if not hasattr(_per_thread, "decompressor"):
        _per_thread.decompressor = zstandard.ZstdDecompressor()
    decompressor: zstandard.ZstdDecompressor = _per_thread.decompressor
    return decompressor


EDGE_BYTES = 12  # source, target and kind, four bytes each


def pack_fields(fields: Sequence[str]) -> bytes:
    """Return the names of columns as they are stored."""
    return msgspec.json.encode(fields)


def unpack_fields(stored: bytes) -> list[str]:
    """Return the names of columns in the order of their ids."""
    return _read_fields(stored)


def pack_ids(ids: Iterable[int]) -> bytes:
    """Return ids as they are stored."""
    numbers = array("i", ids)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()


def unpack_ids(stored: bytes) -> array[int]:
    """Return ids in the order they were packed."""
    numbers = array("i", stored)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def pack_edges(
    sources: Iterable[int],
    targets: Iterable[int],
    kinds: Iterable[int],
    transformations: Sequence[ColumnTransformation],
) -> tuple[bytes, bytes]:
    """Return column edges as they are stored: ids of columns, and transformations."""
    return pack_ids(chain(sources, targets, kinds)), msgspec.json.encode(transformations)


def unpack_edges(stored: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield source, target and kind of column edges, one by one."""
    numbers = unpack_ids(stored)
    size = len(numbers) // 3
    return zip(numbers[:size], numbers[size : 2 * size], numbers[2 * size :], strict=True)


def unpack_kinds(stored: bytes) -> list[ColumnTransformation]:
    """Return the different transformations of the edges of a claim."""
    return _read_kinds(stored)


_read_fields = msgspec.json.Decoder(list[str]).decode
_read_kinds = msgspec.json.Decoder(list[ColumnTransformation]).decode


SPAN = "first_at, first_event, last_at, last_event, observed"


def rows_by_id(queries: SqlQueries, sql: str, ids: Iterable[int]) -> list[Row]:
    """Return the rows of a query that ends in `IN`, for these ids."""
    return queries.rows_in(sql, [int(i) for i in ids])  # drivers do not accept numpy integers


def read_node(kind: int, namespace: str, name: str) -> NodeId:
    """Return the id in a row of `nodes`."""
    return (JobId if kind == NodeKind.JOB else DatasetId)(namespace, name)


_CERTAINTIES = {int(certainty): certainty for certainty in EvidenceRank}  # faster than the class


def read_span(row: Sequence[Any]) -> Span:
    """Return the span in the columns of `SPAN`."""
    first_at, first_event, last_at, last_event, certainty = row
    return Span(
        EventRef(first_at, bytes(first_event)),
        EventRef(last_at, bytes(last_event)),
        _CERTAINTIES[certainty],
    )


def read_body(stored: bytes) -> bytes:
    """Return the JSON of a facet as it was sent."""
    return decompress(bytes(stored)) or b"{}"
