"""Columns and column edges at rest: many in one row, for they come together and never change."""

from __future__ import annotations

import sys
from array import array
from typing import TYPE_CHECKING, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from downriver.model.facts import Derivation

EDGE_BYTES = 12  # source, target and kind, four bytes each


class Said(NamedTuple):
    """What a claim says of a column edge besides its ends."""

    direct: bool
    subtype: str
    description: str
    masking: bool
    confidence: str


def pack_fields(fields: Sequence[str]) -> bytes:
    """Return the names of columns as they are stored."""
    return msgspec.json.encode(fields)


def unpack_fields(stored: bytes) -> list[str]:
    """Return the names of columns in the order of their ids."""
    return _read_fields(stored)


def pack_edges(ends: Sequence[tuple[int, int]], found: Iterable[Derivation]) -> tuple[bytes, bytes]:
    """Return column edges as they are stored: their ends, the columns' ids, and what is said."""
    kinds: dict[tuple[bool, str, str, bool, str], int] = {}
    places = [
        kinds.setdefault((d.direct, d.subtype, d.description, d.masking, d.confidence), len(kinds))
        for d in found
    ]
    sources, targets = zip(*ends, strict=True)
    numbers = array("i", sources)
    numbers.extend(targets)
    numbers.extend(places)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes(), msgspec.json.encode(list(kinds))


def unpack_edges(stored: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield source, target and kind of column edges, one by one."""
    numbers = array("i", stored)
    if sys.byteorder == "big":
        numbers.byteswap()
    size = len(numbers) // 3
    return zip(numbers[:size], numbers[size : 2 * size], numbers[2 * size :], strict=True)


def unpack_kinds(stored: bytes) -> list[Said]:
    """Return the different things a claim says of its edges."""
    return _read_kinds(stored)


_read_fields = msgspec.json.Decoder(list[str]).decode
_read_kinds = msgspec.json.Decoder(list[Said]).decode
