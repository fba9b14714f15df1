"""The shortest names that tell the entities of one answer apart."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from downriver.model.answers import Trace

_ID = re.compile(r"\b(?:dataset|job|column):[^\s,;()\[\]'\"]+")
# What says too little to stand alone: file types, and the usual last parts of job names.
_NOT_A_NAME = re.compile(
    "arrow|avro|csv|db|delta|feather|gz|html|json|jsonl|log|md|mmd|orc|parquet|pkl|py|sql|svg|tar|"
    "tsv|txt|xls|xlsx|xml|yaml|yml|zip|job|main|run|task|test"
)


class _Node(NamedTuple):
    """A dataset or job: what a short name is made of."""

    kind: str
    namespace: str
    name: str


class ShortNames:
    """Names for the entities of one answer, as short as possible; no two of a kind are equal.

    `names["dataset:s3://lake:raw/orders"]` is `orders`, or `raw/orders` if the answer has another
    `orders`. A column is the name of its dataset and its field.
    """

    def __init__(self, ids: Iterable[str]) -> None:
        parsed = {full_id: _parse_id(full_id) for full_id in ids}
        nodes = {node for node, _ in parsed.values()}
        short = dict(_shorten(nodes))
        self._names = {
            full_id: f"{short[node]}.{field}" if field else short[node]
            for full_id, (node, field) in parsed.items()
        }
        counts = Counter(node.namespace for node in nodes)
        self.namespaces = sorted(counts, key=lambda namespace: (-counts[namespace], namespace))

    def __getitem__(self, full_id: str) -> str:
        return self._names.get(full_id, full_id)

    def replace_in(self, text: str) -> str:
        """Return a message with short names in place of the full ids in it."""
        for full_id in sorted(find_ids(text), key=len, reverse=True):
            if full_id in self._names:
                text = text.replace(full_id, self._names[full_id])
        return text


def short_names(trace: Trace) -> ShortNames:
    """Return names for the nodes, aliases and blind spots of a trace."""
    return ShortNames(_trace_ids(trace))


def find_ids(text: str) -> set[str]:
    """Return the full ids in a message."""
    return {match.rstrip(".:") for match in _ID.findall(text)}


def _trace_ids(trace: Trace) -> Iterator[str]:
    for node in trace.nodes:
        yield node.id
        yield from node.aliases
    for spot in trace.blind_spots:
        yield spot.entity
        yield from find_ids(spot.message)


def _parse_id(full_id: str) -> tuple[_Node, str]:
    """Return the node of an id, and the field if it is a column.

    A namespace may contain colons (`postgres://host:5432`), so the name is what follows the last.
    """
    kind, _, rest = full_id.partition(":")
    field = ""
    if kind == "column":
        kind = "dataset"
        rest, _, field = rest.rpartition(":")
    namespace, _, name = rest.rpartition(":")
    return _Node(kind, namespace, name or full_id), field


def _shorten(nodes: set[_Node]) -> Iterator[tuple[_Node, str]]:
    """Yield each node with as many last parts of its name as no other node of its kind has."""
    whole_names = Counter((node.kind, node.name) for node in nodes)
    ambiguous = {node: _endings(node) for node in nodes}
    while ambiguous:
        counts = Counter((node.kind, endings[0]) for node, endings in ambiguous.items())
        for node, (ending, *longer) in list(ambiguous.items()):
            if longer and counts[node.kind, ending] > 1:
                ambiguous[node] = longer
                continue
            del ambiguous[node]
            same = whole_names[node.kind, node.name] > 1 and not longer
            yield node, f"{node.name} ({node.namespace})" if same else ending


def _endings(node: _Node) -> list[str]:
    """Return the name's endings at `/`, or at `.` if it has no `/`, shortest first."""
    name = node.name.rstrip("/") or node.name
    separator = "/" if "/" in name else "."
    starts = [at + 1 for at, character in enumerate(name) if character == separator]
    endings = [name[start:] for start in reversed(starts)]
    return [ending for ending in endings if _is_name(ending)] + [name]


def _is_name(ending: str) -> bool:
    """Whether an ending can stand alone: it has a letter and is not a general word."""
    return not _NOT_A_NAME.fullmatch(ending.casefold()) and any(map(str.isalpha, ending))
