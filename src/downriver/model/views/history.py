"""How datasets, the graph and its KPIs changed over time."""

from __future__ import annotations

import msgspec

from downriver.model.views.graph_view import GraphColumn


class RetypedColumn(msgspec.Struct, kw_only=True, rename={"old": "from", "new": "to"}):
    """A column whose type changed."""

    name: str
    old: str
    new: str


class SchemaVersion(msgspec.Struct, kw_only=True):
    """The columns of a dataset from a moment on, and the changes since the version before."""

    at: str
    last_seen: str
    event: str
    columns: list[GraphColumn]
    added: list[str]
    removed: list[str]
    retyped: list[RetypedColumn]


class SchemaVersions(msgspec.Struct, kw_only=True):
    """The schemas of a dataset, in the order in which they were first seen."""

    versions: list[SchemaVersion]


class KpiPoint(msgspec.Struct, kw_only=True):
    """KPIs at a moment. Shares are percentages; null where there is nothing to measure.

    `certified_path_integrity` is null unless it was asked for.
    """

    at: str
    datasets: int
    jobs: int
    lineage_coverage: float | None
    blast_radius: float | None
    failure_rate: float | None
    certified_path_integrity: float | None = None


class KpiHistory(msgspec.Struct, kw_only=True):
    """KPIs over time, the oldest first."""

    points: list[KpiPoint]


class GraphChange(msgspec.Struct, kw_only=True):
    """A moment at which edges appeared, or turned stale because their job ran without them."""

    at: str
    added: int
    removed: int
    nodes_added: int
    summary: str


class GraphChanges(msgspec.Struct, kw_only=True):
    """The moments at which the graph changed, the oldest first."""

    changes: list[GraphChange]
    omitted_count: int
