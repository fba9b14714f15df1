"""Names of datasets and jobs by any part of them.

Names are lines of one text in the order of answers: datasets before jobs, short names before long
ones, then by name. A search reads the text from the start until it has enough matches, so a
frequent word costs no more than its answer. For a rare word, signatures exclude blocks of lines:
for each of 2,048 hashes of three bytes, they have a bit for every block. A name takes its own
length and 19 bytes.
"""

from __future__ import annotations

import heapq
from array import array
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from downriver.graph.index.vectors import Flags, Ints
    from downriver.store import CatalogReader

_BLOCK = 32  # names
_HASH_BITS = 11
_HASHES = 1 << _HASH_BITS
_BLOCKS_AT_ONCE = 512
_BLOCKS_READ = 1024  # at once, so that a search for few names does not read all of them
_FEW_ALLOWED = 20_000  # names that are read one by one
_SPARSE = 4  # if more than one of so many blocks may have a word, all are read
_SAMPLES, _SAMPLE = 16, 8192  # how many, and bytes of each
_MERGE_WHEN = 4  # a segment is merged with a new one unless it is this many times larger

_SortKey = tuple[int, int, bytes, str, int]


class NameMatches(NamedTuple):
    """The ids of one page of nodes in order, and the number of matches.

    Matches are counted up to a limit. `all_counted`: there are not more than `total`.
    """

    ids: list[int]
    total: int
    all_counted: bool


class NameSet(NamedTuple):
    """Matches, in the order of answers within each segment. `is_whole`: these are all matches."""

    ids: Ints
    kinds: npt.NDArray[np.uint8]
    namespaces: Ints  # their numbers
    segments: npt.NDArray[np.uint8]  # their numbers
    is_whole: bool

    def where(self, flags: Flags) -> NameSet:
        """Return the matches with a flag."""
        return NameSet(
            self.ids[flags],
            self.kinds[flags],
            self.namespaces[flags],
            self.segments[flags],
            self.is_whole,
        )


@dataclass(frozen=True)
class NameSearch:
    """The names of all nodes up to an id. Immutable: loading more returns a new object."""

    segments: tuple[_Segment, ...] = ()
    last_id: int = 0
    namespaces: dict[str, int] = field(default_factory=dict)  # only added to

    def loaded(self, reader: CatalogReader) -> NameSearch:
        """Return an index with the nodes that are new in the catalog."""
        return self.extended(reader.changes.nodes(self.last_id))

    def extended(self, rows: Iterable[tuple[int, int, str, str]]) -> NameSearch:
        """Return an index with more names, each with a higher id: (id, kind, namespace, name)."""
        new = _NewNames(self.namespaces)
        last = self.last_id
        for last, kind, namespace, name in rows:
            new.add(last, kind, namespace, name)
        if last == self.last_id:
            return self
        segments = list(self.segments)
        # The sizes of segments grow by a factor, so that a name is merged only a few times.
        while segments and len(segments[-1]) < _MERGE_WHEN * len(new):
            new.add_segment(segments.pop())
        return replace(self, segments=(*segments, new.segment()), last_id=last)

    def search(self, words: Sequence[str], limit: int, offset: int, most: int) -> NameMatches:
        """Return the nodes whose names contain all words, of which at most `most` are counted."""
        encoded_words = [word.lower().encode("utf-8", "surrogatepass") for word in words if word]
        ids = list(islice(self._ordered(encoded_words), offset, offset + limit))
        counted = 0
        for segment in self.segments:
            counted += segment.count(encoded_words, most + 1 - counted)
        total = max(min(counted, most), offset + len(ids) if ids else 0)
        return NameMatches(ids, total, counted <= most)

    def match(self, words: Sequence[str], most: int, allowed: Flags | None = None) -> NameSet:
        """Return the nodes whose names contain all words: all of them, or more than `most`.

        If there are more, the result includes the first `most` in the order of answers. `allowed`
        has a flag for each id that may be among them; None: all may.
        """
        encoded_words = [word.lower().encode("utf-8", "surrogatepass") for word in words if word]
        numbers, kinds = np.empty(0, np.int32), np.empty(0, np.uint8)
        parts = [(numbers, kinds, numbers, kinds)]
        for number, segment in enumerate(self.segments):
            lines = segment.lines(encoded_words, most + 1, allowed)
            of = np.full(len(lines), number, np.uint8)
            parts.append((segment.ids[lines], segment.kinds[lines], segment.namespaces[lines], of))
        ids, kinds, namespaces, segments = (
            np.concatenate(listed) for listed in zip(*parts, strict=True)
        )
        return NameSet(ids, kinds, namespaces, segments, len(ids) <= most)

    def in_namespaces(self, wanted: Flags, size: int) -> Flags:
        """Return for each id below `size` whether the number of its namespace has a flag."""
        flags = np.zeros(max(size, self.last_id + 1), np.bool_)
        for segment in self.segments:
            flags[segment.ids] = wanted[segment.namespaces]
        return flags[:size]

    def first(self, wanted: Flags, count: int) -> list[int]:
        """Return the first nodes of those with a flag, by id, in the order of answers."""
        spellings = list(self.namespaces)
        parts = []
        for segment in self.segments:
            ids = segment.ids
            known = ids if ids.max(initial=0) < len(wanted) else np.where(ids < len(wanted), ids, 0)
            lines = np.flatnonzero(wanted[known])[:count]
            parts.append([segment.key(line, spellings) for line in lines.tolist()])
        return [key[-1] for key in islice(heapq.merge(*parts), count)]

    def first_spelled(self, words: Sequence[str], count: int) -> Iterator[tuple[int, str]]:
        """Yield the first matches in order: ids, and the values of `namespaces`."""
        encoded_words = [word.lower().encode("utf-8", "surrogatepass") for word in words if word]
        spellings = list(self.namespaces)
        keys = (segment.find_keys(encoded_words, spellings) for segment in self.segments)
        return ((key[-1], key[-2]) for key in islice(heapq.merge(*keys), count))

    def _ordered(self, words: list[bytes]) -> Iterator[int]:
        """Yield the ids of matches in order."""
        if len(self.segments) == 1:
            (segment,) = self.segments
            return (int(segment.ids[line]) for line, _ in segment.find(words))
        spellings = list(self.namespaces)
        keys = (segment.find_keys(words, spellings) for segment in self.segments)
        return (key[-1] for key in heapq.merge(*keys))


@dataclass(frozen=True, slots=True)
class _Segment:
    """Names in order. `starts` are their places in `text`, and its length."""

    text: bytes  # each name in lower case, after a line feed
    starts: npt.NDArray[np.uint32]
    signatures: npt.NDArray[np.uint8]  # by hash: a bit for each block
    ids: Ints
    kinds: npt.NDArray[np.uint8]
    lengths: npt.NDArray[np.uint16]
    namespaces: Ints

    def __len__(self) -> int:
        return len(self.ids)

    def find(self, words: list[bytes]) -> Iterator[tuple[int, bytes]]:
        """Yield the names that contain all words, in order, with their places."""
        if not words:
            yield from self._all()
            return
        rarest = min(words, key=lambda word: (self._estimate(word), -len(word)))
        others = [word for word in words if word is not rarest]
        for first, end in self._candidates(words):
            yield from self._find_in(first, end, rarest, others)

    def lines(
        self, words: list[bytes], most: int, allowed: Flags | None = None
    ) -> npt.NDArray[np.int64]:
        """Return the lines of the first `most` names that contain all words and are allowed."""
        if allowed is not None:
            lines = np.flatnonzero(_flags_of(self.ids, allowed))
            if not words or len(lines) <= _FEW_ALLOWED:
                return self._with_words(lines, words)[:most]
        if not words:
            return np.arange(min(len(self), most))
        rarest, *others = sorted(words, key=lambda word: (self._estimate(word), -len(word)))
        parts, count = [np.empty(0, np.int64)], 0
        for first, end in self._candidates(words):
            for start in range(first, end, _BLOCKS_READ):
                lines = self._lines_in(start, min(start + _BLOCKS_READ, end), rarest)
                if allowed is not None:
                    lines = lines[_flags_of(self.ids[lines], allowed)]
                parts.append(self._with_words(lines, others))
                count += len(parts[-1])
                if count >= most:
                    return np.concatenate(parts)[:most]
        return np.concatenate(parts)

    def _with_words(
        self, lines: npt.NDArray[np.int64], words: list[bytes]
    ) -> npt.NDArray[np.int64]:
        """Return those of the lines that contain all words."""
        text = self.text
        for word in words:
            ends = zip(self.starts[lines].tolist(), self.starts[lines + 1].tolist(), strict=True)
            has = (text.find(word, start, end) >= 0 for start, end in ends)
            lines = lines[np.fromiter(has, np.bool_, len(lines))]
        return lines

    def _lines_in(self, first: int, end: int, word: bytes) -> npt.NDArray[np.int64]:
        """Return the lines with a word in the blocks from `first` to before `end`."""
        start = self._block_start(first)
        *before, _ = self.text[start : self._block_start(end)].split(word)
        sizes = np.fromiter(map(len, before), np.int64, len(before)) + len(word)
        places = (start + np.cumsum(sizes) - len(word)).astype(np.uint32)
        return np.unique(np.searchsorted(self.starts, places, "right") - 1)

    def _block_start(self, block: int) -> int:
        return int(self.starts[min(block * _BLOCK, len(self))])

    def count(self, words: list[bytes], most: int) -> int:
        """Count the names that contain all words, up to `most`."""
        if not words:
            return min(len(self), most)
        if len(words) > 1:
            return sum(1 for _ in islice(self.find(words), most))
        ((word,), text, count) = (words, self.text, 0)
        for first, end in self._candidates(words):
            read, stop = self._block_start(first), self._block_start(end)
            while count < most and (at := text.find(word, read, stop)) >= 0:
                count += 1
                read = text.find(b"\n", at, stop)
                if read < 0:
                    break
        return count

    def _all(self) -> Iterator[tuple[int, bytes]]:
        for line, (start, stop) in enumerate(pairwise(self.starts.tolist())):
            yield line, self.text[start + 1 : stop]

    def _estimate(self, word: bytes) -> int:
        """Count a word in samples from all parts of the text."""
        step = max(_SAMPLE, len(self.text) // _SAMPLES)
        starts = range(0, len(self.text), step)
        return sum(self.text.count(word, start, start + _SAMPLE) for start in starts)

    def _find_in(
        self, first: int, end: int, rarest: bytes, others: list[bytes]
    ) -> Iterator[tuple[int, bytes]]:
        """Yield the matching names in the blocks from `first` to before `end`."""
        text, line = self.text, first * _BLOCK - 1
        read, stop = self._block_start(first), self._block_start(end)
        while (at := text.find(rarest, read, stop)) >= 0:
            line += text.count(b"\n", read, at)
            after = text.find(b"\n", at, stop)
            after = stop if after < 0 else after
            name = text[text.rfind(b"\n", read, at) + 1 : after]
            if not others or all(word in name for word in others):
                yield line, name
            read = after

    def find_keys(self, words: list[bytes], spellings: list[str]) -> Iterator[_SortKey]:
        """Yield the sort keys of matches across segments. The last part of a key is the id."""
        return (self.key(line, spellings) for line, _ in self.find(words))

    def key(self, line: int, spellings: list[str]) -> _SortKey:
        """Return the sort key of a name across segments. The last part of the key is the id."""
        return (
            int(self.kinds[line]),
            int(self.lengths[line]),
            self.text[int(self.starts[line]) + 1 : int(self.starts[line + 1])],
            spellings[self.namespaces[line]],
            int(self.ids[line]),
        )

    def _candidates(self, words: list[bytes]) -> Iterator[tuple[int, int]]:
        """Yield ranges of blocks that may have a name with all words."""
        hashes = np.unique(np.concatenate([_hashes(word) for word in words]))
        blocks = -(-len(self) // _BLOCK)
        if not len(hashes):
            yield 0, blocks
            return
        bits = np.bitwise_and.reduce(self.signatures[hashes], axis=0)
        candidates = np.flatnonzero(np.unpackbits(bits, count=blocks))
        if not len(candidates):
            return
        if len(candidates) > blocks // _SPARSE:
            yield int(candidates[0]), int(candidates[-1]) + 1
            return
        ends = np.flatnonzero(np.diff(candidates) > 1)
        firsts = candidates[np.concatenate([[0], ends + 1])].tolist()
        lasts = candidates[np.concatenate([ends, [len(candidates) - 1]])].tolist()
        for first, last in zip(firsts, lasts, strict=True):
            yield first, last + 1


class _NewNames:
    """Names that are not in order yet."""

    def __init__(self, namespaces: dict[str, int]) -> None:
        self._numbers = namespaces
        self._names: list[bytes] = []
        self._ids = array("i")
        self._kinds = array("B")
        self._lengths = array("H")
        self._namespaces = array("i")

    def __len__(self) -> int:
        return len(self._names)

    def add(self, number: int, kind: int, namespace: str, name: str) -> None:
        """Add a node."""
        # A line feed in a name would end its line.
        lower = name.lower().replace("\n", " ")
        self._names.append(lower.encode("utf-8", "surrogatepass"))
        self._ids.append(number)
        self._kinds.append(kind)
        self._lengths.append(min(len(name), 65535))
        self._namespaces.append(self._numbers.setdefault(namespace, len(self._numbers)))

    def add_segment(self, segment: _Segment) -> None:
        """Add all names of a segment."""
        self._names += segment.text.split(b"\n")[1:]
        self._ids.extend(segment.ids.tolist())
        self._kinds.extend(segment.kinds.tolist())
        self._lengths.extend(segment.lengths.tolist())
        self._namespaces.extend(segment.namespaces.tolist())

    def segment(self) -> _Segment:
        """Return the names in order."""
        names, spellings = self._names, list(self._numbers)
        order = sorted(
            range(len(names)),
            key=lambda at: (
                self._kinds[at],
                self._lengths[at],
                names[at],
                spellings[self._namespaces[at]],
                self._ids[at],
            ),
        )
        places = np.array(order, np.int64)
        sizes = np.array([len(names[at]) + 1 for at in order], np.int64)
        starts = np.concatenate([[0], np.cumsum(sizes)])
        text = b"".join(b"\n" + names[at] for at in order)
        return _Segment(
            text,
            starts.astype(np.uint32),
            _signatures(text, np.append(starts[:-1:_BLOCK], starts[-1])),
            np.array(self._ids, np.int32)[places],
            np.array(self._kinds, np.uint8)[places],
            np.array(self._lengths, np.uint16)[places],
            np.array(self._namespaces, np.int32)[places],
        )


def _flags_of(ids: Ints, flags: Flags) -> Flags:
    """Return the flag of each id; an id past the end has none."""
    if not len(flags):
        return np.zeros(len(ids), np.bool_)
    flags_by_id: Flags = flags[np.minimum(ids, len(flags) - 1)] & (ids < len(flags))
    return flags_by_id


def _hashes(text: bytes | memoryview) -> npt.NDArray[np.uint16]:
    """Return a hash of every three bytes that follow one another."""
    data = np.frombuffer(text, np.uint8).astype(np.uint16)
    if len(data) < 3:
        return np.empty(0, np.uint16)
    # In 16 bits: higher bits are cut off.
    three = data[:-2] * np.uint16(961) + data[1:-1] * np.uint16(31) + data[2:]
    hashes: npt.NDArray[np.uint16] = three * np.uint16(40503) >> np.uint16(16 - _HASH_BITS)
    return hashes


def _signatures(text: bytes, block_starts: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
    """Return for each hash which blocks have it."""
    blocks = len(block_starts) - 1
    parts: list[npt.NDArray[np.uint8]] = []
    for first in range(0, blocks, _BLOCKS_AT_ONCE):
        starts = block_starts[first : first + _BLOCKS_AT_ONCE + 1]
        hashes = _hashes(memoryview(text)[int(starts[0]) : int(starts[-1])])
        of_place = np.repeat(np.arange(len(starts) - 1), np.diff(starts))[: len(hashes)]
        has = np.zeros((_HASHES, len(starts) - 1), np.bool_)
        has[hashes, of_place] = True
        parts.append(np.packbits(has, axis=1))
    return np.concatenate(parts, axis=1)
