"""The content of events as facts that merge in any order.

A fact is a key with a value from a semilattice: merging is commutative, associative and idempotent,
so duplicates, retries and any order of arrival lead to the same catalog. Nearly every fact is a
*sighting*: a key and the `Span` of time in which events showed it.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from downriver.model.ids import ColumnId, DatasetId, JobId, NodeId, RunId


class EventRef(msgspec.Struct, frozen=True, order=True, gc=False):
    """An event: when it happened (µs since the epoch, UTC) and the SHA-256 of its bytes."""

    at: int
    digest: bytes


class EvidenceRank(IntEnum):
    """How certain a fact of an event is. The numbers are stored. The largest number applies."""

    INFERRED = -1  # read by Downriver from what a producer sent, such as the SQL of a job
    DECLARED = 0  # by a JobEvent or DatasetEvent
    OBSERVED = 1  # by a run


class Span(msgspec.Struct, frozen=True, gc=False):
    """The first and last event that contain a fact, and the largest certainty of these events."""

    first: EventRef
    last: EventRef
    certainty: EvidenceRank

    @property
    def observed(self) -> bool:
        """Whether a run observed it."""
        return self.certainty is EvidenceRank.OBSERVED

    def merge(self, other: Span) -> Span:
        """Return the span that covers both."""
        if self is other:
            return self
        return Span(
            min(self.first, other.first),
            max(self.last, other.last),
            max(self.certainty, other.certainty),
        )


class EdgeKind(IntEnum):
    """How two nodes are connected. The numbers are stored: append, never renumber."""

    READS = 1  # dataset -> job
    WRITES = 2  # job -> dataset
    DERIVES = 3  # dataset -> dataset, stated explicitly; `via` is the job that stated it, if any
    EXPLICIT = 4  # job -> dataset: all sources of this dataset in this job are DERIVES edges
    ALIAS = 5  # dataset -> dataset: two names of one dataset (symlinks facet)
    RENAMED = 6  # dataset -> dataset: old name -> new name
    PARENT = 7  # job -> job: the first runs the second
    PRECEDES = 8  # job -> job: control flow, no data
    SAME = 9  # dataset -> dataset: a person states that two names are one dataset
    DIFFERENT = 10  # dataset -> dataset: a person states the opposite; the later statement applies


# The kinds of edges that start at a job, and those that end at one.
FROM_JOB = (EdgeKind.WRITES, EdgeKind.EXPLICIT, EdgeKind.PARENT, EdgeKind.PRECEDES)
TO_JOB = (EdgeKind.READS, EdgeKind.PARENT, EdgeKind.PRECEDES)


class FacetRole(IntEnum):
    """What a facet is attached to. The numbers are stored: append, never renumber."""

    NODE = 0
    RUN = 1
    INPUT = 2
    OUTPUT = 3


class NodeSeen(msgspec.Struct, frozen=True, gc=False):
    """A dataset or a job exists."""

    node: NodeId


class EdgeSeen(msgspec.Struct, frozen=True, gc=False):
    """Two nodes are connected."""

    kind: EdgeKind
    source: NodeId
    target: NodeId
    via: JobId | None = None


class FacetSeen(msgspec.Struct, frozen=True, gc=False):
    """A facet was attached to a node, to a run, or to a dataset as one run read or wrote it."""

    role: FacetRole
    node: NodeId
    run: RunId | None
    name: str
    digest: bytes


class ClaimSeen(msgspec.Struct, frozen=True, gc=False):
    """A facet states from which columns the columns of a dataset derive.

    `job` is None when a DatasetEvent states it.
    """

    job: JobId | None
    dataset: DatasetId
    facet: Literal["columnLineage", "lineage", "lineage-entry"]
    digest: bytes


Sighting: TypeAlias = NodeSeen | EdgeSeen | FacetSeen | ClaimSeen


class RunState(IntEnum):
    """States in the order in which they supersede each other at the same moment."""

    OTHER = 0
    START = 1
    RUNNING = 2
    COMPLETE = 3
    ABORT = 4
    FAIL = 5

    @property
    def terminal(self) -> bool:
        """True when the run has ended."""
        return self >= RunState.COMPLETE


class RunFact(msgspec.Struct, frozen=True):
    """The state of a run. A later state replaces an earlier one, in any order of events.

    Of two end states, the one with the later event time applies.
    """

    state: RunState
    state_at: int
    started_at: int | None
    span: Span

    @property
    def precedence(self) -> tuple[int, int, int]:
        """The order of states: an end state is above all others, then the later one."""
        tier = RunState.COMPLETE if self.state.terminal else self.state
        return (tier, self.state_at, self.state)

    def merge(self, other: RunFact) -> RunFact:
        """Return the merged state."""
        winner = max(self, other, key=lambda fact: fact.precedence)
        starts = [at for at in (self.started_at, other.started_at) if at is not None]
        return RunFact(
            winner.state,
            winner.state_at,
            min(starts, default=None),
            self.span.merge(other.span),
        )


class Derivation(msgspec.Struct, frozen=True, order=True, gc=False):
    """One column derives from another. `*` as a field stands for every column of its dataset."""

    source: ColumnId
    target: ColumnId
    direct: bool
    subtype: str
    description: str = ""
    masking: bool = False
    confidence: str = ""


class ColumnTransformation(NamedTuple):
    """How a column edge transforms the value."""

    direct: bool
    subtype: str
    description: str
    masking: bool
    confidence: str


class Facts(msgspec.Struct):
    """A set of facts; `bodies` contains the raw JSON of its facets, by digest."""

    sightings: dict[Sighting, Span]
    runs: dict[RunId, RunFact]
    bodies: dict[bytes, bytes]

    @classmethod
    def empty(cls) -> Facts:
        """Return the empty set."""
        return cls({}, {}, {})

    def update(self, other: Facts) -> None:
        """Merge `other` into this set."""
        mine = self.sightings
        for key, span in other.sightings.items():
            merged = mine.get(key)
            mine[key] = span if merged is None else merged.merge(span)
        for run, fact in other.runs.items():
            known_run = self.runs.get(run)
            self.runs[run] = fact if known_run is None else known_run.merge(fact)
        self.bodies.update(other.bodies)
