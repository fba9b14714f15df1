"""The answer of a trace, the same JSON on every surface, and when an answer is complete."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Literal

import msgspec

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from downriver.model.unread import Unread


class MappingStruct(msgspec.Struct):
    """A struct that is also a mapping: `value["field"]`, `value.get("field")`, `dict(value)`."""

    def keys(self) -> list[str]:
        """Return the names of the fields."""
        return list(self.__struct_fields__)

    def __getitem__(self, name: str) -> Any:
        if name not in self.keys():
            raise KeyError(name)
        return getattr(self, name)

    def get(self, name: str, default: Any = None) -> Any:
        """Return a field, or `default` if there is no such field."""
        return self[name] if name in self.keys() else default

    def __contains__(self, name: object) -> bool:
        return name in self.keys()

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __len__(self) -> int:
        return len(self.keys())

    def values(self) -> list[Any]:
        """Return the values of the fields."""
        return [self[name] for name in self.keys()]

    def items(self) -> list[tuple[str, Any]]:
        """Return the names and values of the fields."""
        return [(name, self[name]) for name in self.keys()]

    def to_dict(self) -> dict[str, Any]:
        """Return the value as JSON types: dictionaries, lists, strings and numbers."""
        fields: dict[str, Any] = msgspec.to_builtins(self)
        return fields


NodeKind = Literal["dataset", "job", "column"]


class Direction(str, Enum):
    """The direction of a trace."""

    UPSTREAM = "upstream"
    DOWNSTREAM = "downstream"
    BOTH = "both"


class TraceNode(msgspec.Struct, kw_only=True, omit_defaults=True, gc=False, frozen=True):
    """A dataset, job or column in an answer.

    `depth` counts the jobs between it and the root: negative upstream, positive downstream. `marks`
    are labels for exports: `certified`, `pii`, `broken`; `added` or `removed` in a diff.
    `statements` are jobs that report one statement of this job. The answer shows them as this job.
    """

    id: str
    kind: NodeKind
    namespace: str
    name: str
    depth: int
    field: str | None = None
    derivation: Literal["DIRECT", "INDIRECT"] | None = None
    transformation: str | None = None
    aliases: list[str] = []
    statements: list[str] = []
    marks: list[str] = []


class TraceEdge(msgspec.Struct, kw_only=True, omit_defaults=True, gc=False, frozen=True):
    """One step of the data, with its evidence; `change` is set when two moments are compared."""

    source: str
    target: str
    kind: str
    status: Literal["active", "stale"]
    confidence: str
    first_seen: str
    last_seen: str
    first_event: str
    last_event: str
    job: str | None = None
    type: Literal["DIRECT", "INDIRECT"] | None = None
    subtype: str | None = None
    description: str | None = None
    masking: bool = False
    change: Literal["added", "removed"] | None = None


class BlindSpot(MappingStruct, kw_only=True):
    """A part of the graph that is unknown: what, where, and what to do about it."""

    kind: str
    entity: str
    message: str


class PossibleCut(MappingStruct, kw_only=True):
    """Two datasets that may be one dataset under two names, and the command that joins them.

    A trace ends at one of them, although the data may continue at the other.
    """

    written: str
    read: str
    difference: str
    command: str


class PossibleCuts(MappingStruct, kw_only=True):
    """The possible cuts of a graph. Complete if every pair of similar names was compared."""

    cuts: list[PossibleCut]
    complete: bool
    blind_spots: list[BlindSpot]


class SameStatement(MappingStruct, kw_only=True):
    """A recorded statement that two names are one dataset, or that they are not."""

    one: str
    other: str
    same: bool
    at: str


class SameStatements(MappingStruct, kw_only=True):
    """The recorded statements about names, the latest for each pair."""

    statements: list[SameStatement]


class Trace(msgspec.Struct, kw_only=True):
    """A piece of the graph around `root`, and how complete it is.

    `omitted_count` counts the nodes that the limit leaves out, and the nodes one step beyond the
    depth, where the walk ends. `reader_count` is the number of jobs that only read and are left out
    of `nodes`.
    """

    root: TraceNode
    nodes: list[TraceNode]
    edges: list[TraceEdge]
    complete: bool
    blind_spots: list[BlindSpot]
    omitted_count: int = 0
    reader_count: int = 0


class Paths(msgspec.Struct, kw_only=True):
    """The shortest paths of data from one node to another, each a list of node ids."""

    source: TraceNode
    target: TraceNode
    paths: list[list[str]]
    complete: bool
    blind_spots: list[BlindSpot]


# Kinds of blind spots that result from the limits of the question. An answer with counts of omitted
# nodes (`shown` and `total`) need not list them.
LIMITS = frozenset({"depth_limit", "node_limit"})


def is_complete(blind_spots: Collection[BlindSpot], *, unread: Collection[Unread] = ()) -> bool:
    """Return whether everything that an answer depends on is known.

    Whatever is unknown is a blind spot (`possible_cut`, `job_without_inputs`, a depth limit …) or,
    in a change, an unread file or statement. An answer with any of them is not complete.
    """
    return not blind_spots and not unread
