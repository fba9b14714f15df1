"""The tables of the catalog, and how each merges rows: the semilattice of `model.facts` in SQL.

The statements are the same text for SQLite and PostgreSQL; only the way rows are passed differs.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

Columns: TypeAlias = tuple[tuple[str, str], ...]  # names, and types as PostgreSQL calls them

_SPAN = (
    ("first_at", "bigint"),
    ("first_event", "bytea"),
    ("last_at", "bigint"),
    ("last_event", "bytea"),
    ("observed", "smallint"),
)

_MERGE_SPAN = """
    first_event = CASE WHEN (excluded.first_at, excluded.first_event) < (t.first_at, t.first_event)
                       THEN excluded.first_event ELSE t.first_event END,
    first_at = CASE WHEN excluded.first_at < t.first_at THEN excluded.first_at ELSE t.first_at END,
    last_event = CASE WHEN (excluded.last_at, excluded.last_event) > (t.last_at, t.last_event)
                      THEN excluded.last_event ELSE t.last_event END,
    last_at = CASE WHEN excluded.last_at > t.last_at THEN excluded.last_at ELSE t.last_at END,
    observed = CASE WHEN excluded.observed > t.observed THEN excluded.observed ELSE t.observed END
"""

_MERGE_RUN = """
    state = CASE WHEN (excluded.tier, excluded.state_at, excluded.state)
                      > (t.tier, t.state_at, t.state) THEN excluded.state ELSE t.state END,
    state_at = CASE WHEN (excluded.tier, excluded.state_at, excluded.state)
                         > (t.tier, t.state_at, t.state) THEN excluded.state_at ELSE t.state_at END,
    tier = CASE WHEN excluded.tier > t.tier THEN excluded.tier ELSE t.tier END,
    started_at = CASE WHEN t.started_at IS NULL OR excluded.started_at < t.started_at
                      THEN excluded.started_at ELSE t.started_at END,
"""


class CatalogTable(NamedTuple):
    """A table, and the SQL that merges a row with an existing one."""

    name: str
    columns: Columns
    conflict: str

    @property
    def column_names(self) -> tuple[str, ...]:
        """The names of the columns, in the order of the rows."""
        return tuple(name for name, _ in self.columns)

    def insert_from(self, rows: str) -> str:
        """Return the merge statement over `rows`, a VALUES or SELECT clause."""
        columns = ", ".join(self.column_names)
        return f"INSERT INTO {self.name} AS t ({columns}) {rows} {self.conflict}"


NODES = CatalogTable(
    "nodes",
    (
        ("id", "int"),
        ("kind", "smallint"),
        ("namespace", "text"),
        ("name", "text"),
        ("short", "text"),
        *_SPAN,
    ),
    f"ON CONFLICT (id) DO UPDATE SET {_MERGE_SPAN}",
)

COLUMN_SETS = CatalogTable(
    "column_sets",
    (
        ("first_id", "int"),
        ("dataset", "int"),
        ("size", "int"),
        ("named", "int"),
        ("fields", "bytea"),
    ),
    "",
)

EDGES = CatalogTable(
    "edges",
    (
        ("id", "int"),
        ("kind", "smallint"),
        ("source", "int"),
        ("target", "int"),
        ("via", "int"),
        *_SPAN,
    ),
    f"ON CONFLICT (id) DO UPDATE SET {_MERGE_SPAN}",
)

RUNS = CatalogTable(
    "runs",
    (
        ("id", "bigint"),
        ("job", "int"),
        ("run", "text"),
        ("tier", "smallint"),
        ("state", "smallint"),
        ("state_at", "bigint"),
        ("started_at", "bigint"),
        *_SPAN,
    ),
    f"ON CONFLICT (id) DO UPDATE SET {_MERGE_RUN} {_MERGE_SPAN}",
)

BODIES = CatalogTable(
    "bodies", (("digest", "bytea"), ("body", "bytea")), "ON CONFLICT (digest) DO NOTHING"
)

FACETS = CatalogTable(
    "facets",
    (
        ("role", "smallint"),
        ("node", "int"),
        ("run", "bigint"),
        ("name", "text"),
        ("digest", "bytea"),
        *_SPAN,
    ),
    f"ON CONFLICT (node, role, name, run, digest) DO UPDATE SET {_MERGE_SPAN}",
)

CLAIMS = CatalogTable(
    "claims",
    (
        ("id", "int"),
        ("job", "int"),
        ("dataset", "int"),
        ("facet", "text"),
        ("digest", "bytea"),
        *_SPAN,
    ),
    f"ON CONFLICT (id) DO UPDATE SET {_MERGE_SPAN}",
)

DERIVATIONS = CatalogTable(
    "derivations", (("claim", "int"), ("edges", "bytea"), ("kinds", "bytea")), ""
)

CHANGES = CatalogTable(
    "changes",
    (
        ("seq", "bigint"),
        ("edges", "bytea"),
        ("claims", "bytea"),
        ("labelled", "bytea"),
        ("nodes", "bytea"),
    ),
    "",
)
CHANGES_KEPT = 1_000_000  # log entries; a reader that is further behind reads all rows

LOG = CatalogTable(
    "log",
    (
        ("seq", "bigint"),
        ("digest", "bytea"),
        ("received_at", "bigint"),
        ("chain", "bytea"),
        ("body", "bytea"),
    ),
    "",
)

RUN_EVENTS = CatalogTable(
    "run_events", (("at", "bigint"), ("seq", "bigint"), ("state", "smallint")), ""
)

PROJECTIONS = (
    *(NODES, COLUMN_SETS, EDGES, RUNS, BODIES, FACETS, CLAIMS, DERIVATIONS, CHANGES),
    RUN_EVENTS,
)


class NaturalKey(NamedTuple):
    """The natural key of a row; `nodes` are the indexes of its columns that are node ids."""

    table: str
    columns: Columns
    id_column: str = "id"
    nodes: tuple[int, ...] = ()


LOG_KEY = NaturalKey("log", (("digest", "bytea"),), "seq")
NODE_KEY = NaturalKey("nodes", (("kind", "smallint"), ("namespace", "text"), ("name", "text")))
EDGE_KEY = NaturalKey(
    "edges",
    (("kind", "smallint"), ("source", "int"), ("target", "int"), ("via", "int")),
    nodes=(1, 2),
)
RUN_KEY = NaturalKey("runs", (("job", "int"), ("run", "text")), nodes=(0,))
CLAIM_KEY = NaturalKey(
    "claims",
    (("job", "int"), ("dataset", "int"), ("facet", "text"), ("digest", "bytea")),
    nodes=(0, 1),
)
KEYS = (NODE_KEY, EDGE_KEY, RUN_KEY, CLAIM_KEY)
