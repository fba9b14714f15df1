"""Generated lineage of a company: layers from raw to dashboard, teams, tables with many readers.

It is the same for the same size, on every machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
import psycopg

from bench.postgres_copy import Values, copy_rows
from downriver.model.facts import EdgeKind
from downriver.model.ids import NodeKind
from downriver.store import open_store
from downriver.store.catalog import tables
from downriver.store.catalog.encoding import pack_fields

if TYPE_CHECKING:
    pass

Numbers = npt.NDArray[np.int64]

SEED = 7
NAMESPACE = "postgres://wh:5432"
COLUMNS_EACH = 4

_TEAM = 500  # datasets
# How much of a team is in each layer: raw, staging, … marts, dashboards.
_LAYERS = (0.10, 0.12, 0.12, 0.12, 0.10, 0.10, 0.09, 0.08, 0.07, 0.05, 0.03, 0.02)
_INPUTS_EACH = 2.8  # of those that are not raw: 2.5 over all
_FROM_LAYER_BELOW = 0.85
_FROM_HUB = 0.10
_FROM_OTHER_TEAM = 0.15
_TEAMS_A_HUB = 2
_MOMENT = 1_767_225_600_000_000  # 2026-01-01, in µs

_EVIDENCE: dict[str, Values | int | bytes] = {
    "first_at": _MOMENT,
    "first_event": bytes(31) + b"1",
    "last_at": _MOMENT + 10**6,
    "last_event": bytes(31) + b"2",
    "observed": 1,
}
_SUBTYPES = ("IDENTITY", "TRANSFORMATION", "AGGREGATION")


class Warehouse(NamedTuple):
    """The edges. Datasets are 1 to `datasets`; dataset d is written by job `datasets` + d."""

    datasets: int
    reads_from: Numbers  # sorted by read_for
    read_for: Numbers
    column_source: Numbers  # sorted by claim
    column_target: Numbers
    column_claim: Numbers
    claim_dataset: Numbers  # of claim 1, 2, …

    def dataset_degrees(self) -> tuple[Numbers, Numbers]:
        """Return the number of inputs and of readers of each dataset, by its id."""
        size = self.datasets + 1
        return np.bincount(self.read_for, minlength=size), np.bincount(
            self.reads_from, minlength=size
        )

    def column_degrees(self) -> tuple[Numbers, Numbers]:
        """Return the number of source and target columns of each column, by its id."""
        size = self.datasets * COLUMNS_EACH + 1
        return np.bincount(self.column_target, minlength=size), np.bincount(
            self.column_source, minlength=size
        )


def dataset_name(number: int) -> str:
    """Return the full id of a dataset."""
    return f"dataset:{NAMESPACE}:sales.table_{number:08d}"


def column_name(number: int) -> str:
    """Return the full id of a column."""
    dataset, field = divmod(number - 1, COLUMNS_EACH)
    return f"column:{NAMESPACE}:sales.table_{dataset + 1:08d}:column_{field}"


def make_warehouse(datasets: int, column_edges: int) -> Warehouse:
    """Generate a warehouse with this number of datasets and about this number of column edges."""
    random = np.random.default_rng(SEED)
    # Ids have the order of events, which is independent of teams and layers.
    ids = random.permutation(datasets) + 1
    reads_from, read_for = _reads(random, datasets)
    reads = np.unique(ids[read_for] << 32 | ids[reads_from])
    reads_from, read_for = reads & 0xFFFFFFFF, reads >> 32
    return Warehouse(
        datasets,
        reads_from,
        read_for,
        *_column_edges(random, reads_from, read_for, column_edges),
    )


def _reads(random: np.random.Generator, datasets: int) -> tuple[Numbers, Numbers]:
    """Return (source, target) places; team and layer follow from a place."""
    sizes = np.round(np.array(_LAYERS) * _TEAM).astype(np.int64)
    starts = np.cumsum(sizes) - sizes
    layer_of = np.repeat(np.arange(len(sizes)), sizes)
    places = np.arange(datasets)
    derived = places[layer_of[places % _TEAM] > 0]
    target = np.repeat(derived, 1 + random.poisson(_INPUTS_EACH - 1, len(derived)))
    layer = layer_of[target % _TEAM]
    below = np.where(
        random.random(len(target)) < _FROM_LAYER_BELOW,
        layer - 1,
        (random.random(len(target)) * layer).astype(np.int64),
    )
    # Squared: some datasets of a team have many readers.
    within = starts[below] + (sizes[below] * random.random(len(target)) ** 2).astype(np.int64)
    teams = datasets // _TEAM
    team = target // _TEAM
    chance = random.random(len(target))
    other = chance < _FROM_OTHER_TEAM
    team[other] = (team[other] + random.integers(1, 6, int(other.sum()))) % teams
    source = team * _TEAM + within
    hub = (chance > 1 - _FROM_HUB) & (layer > 1)
    source[hub] = _TEAMS_A_HUB * _TEAM * _hubs(random, teams, int(hub.sum())) + starts[1]
    return source, target


def _hubs(random: np.random.Generator, teams: int, count: int) -> Numbers:
    weights = 1 / np.arange(1, teams // _TEAMS_A_HUB + 1)
    return random.choice(len(weights), count, p=weights / weights.sum())


def _column_edges(
    random: np.random.Generator, reads_from: Numbers, read_for: Numbers, wanted: int
) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Return source, target and claim of column edges that match the reads."""
    claim_dataset, first, inputs = np.unique(read_for, return_index=True, return_counts=True)
    if not wanted:
        none = np.empty(0, np.int64)
        return none, none, none, none
    claim = np.sort(random.integers(0, len(claim_dataset), wanted))
    read = first[claim] + (inputs[claim] * random.random(wanted)).astype(np.int64)
    source = _some_column(random, reads_from[read])
    target = _some_column(random, claim_dataset[claim])
    return source, target, claim + 1, claim_dataset


def _some_column(random: np.random.Generator, datasets: Numbers) -> Numbers:
    return (datasets - 1) * COLUMNS_EACH + random.integers(1, COLUMNS_EACH + 1, len(datasets))


def load_warehouse(url: str, warehouse: Warehouse) -> None:
    """Write a warehouse into the tables of a new store, as events would."""
    open_store(url).close()
    with psycopg.connect(url, autocommit=True) as connection:
        for table in tables.PROJECTIONS:
            connection.execute(f"ALTER TABLE {table.name} SET UNLOGGED")
        _load_nodes(connection, warehouse)
        _load_edges(connection, warehouse)
        if len(warehouse.column_source):
            _load_columns(connection, warehouse)
        _load_rows_to_recurse(connection, warehouse)
        connection.execute("UPDATE meta SET projected = 1")


def _load_nodes(connection: psycopg.Connection, warehouse: Warehouse) -> None:
    numbers = np.arange(1, warehouse.datasets + 1)
    kinds = ((NodeKind.DATASET, 0, b"table_"), (NodeKind.JOB, warehouse.datasets, b"build_"))
    for kind, first, prefix in kinds:
        short = _named(prefix, numbers)
        values: dict[str, Values | int | bytes] = {
            "id": numbers + first,
            "kind": int(kind),
            "namespace": NAMESPACE.encode(),
            "name": np.char.add(b"sales.", short),
            "short": short,
        }
        copy_rows(connection, tables.NODES, values | _EVIDENCE)


def _load_edges(connection: psycopg.Connection, warehouse: Warehouse) -> None:
    datasets = np.arange(1, warehouse.datasets + 1)
    reads = len(warehouse.read_for)
    for kind, first, source, target in (
        (EdgeKind.READS, 1, warehouse.reads_from, warehouse.read_for + warehouse.datasets),
        (EdgeKind.WRITES, 1 + reads, datasets + warehouse.datasets, datasets),
    ):
        values: dict[str, Values | int | bytes] = {
            "id": np.arange(first, first + len(source)),
            "kind": int(kind),
            "source": source,
            "target": target,
            "via": 0,
            "changed": 1,
        }
        copy_rows(connection, tables.EDGES, values | _EVIDENCE)


def _load_columns(connection: psycopg.Connection, warehouse: Warehouse) -> None:
    datasets = np.arange(warehouse.datasets)
    fields = pack_fields([f"column_{n}" for n in range(COLUMNS_EACH)])
    values: dict[str, Values | int | bytes] = {
        "first_id": datasets * COLUMNS_EACH + 1,
        "dataset": datasets + 1,
        "size": COLUMNS_EACH,
        "named": COLUMNS_EACH,
        "fields": fields,
    }
    copy_rows(connection, tables.COLUMN_SETS, values)
    claims = np.arange(1, len(warehouse.claim_dataset) + 1)
    values = {
        "id": claims,
        "job": warehouse.claim_dataset + warehouse.datasets,
        "dataset": warehouse.claim_dataset,
        "facet": b"columnLineage",
        "digest": claims.astype(">i8").view("S8"),
        "changed": 1,
    }
    copy_rows(connection, tables.CLAIMS, values | _EVIDENCE)
    _load_derivations(connection, warehouse)


def _load_derivations(connection: psycopg.Connection, warehouse: Warehouse) -> None:
    order = np.argsort(warehouse.column_claim, kind="stable")
    claims, starts = np.unique(warehouse.column_claim[order], return_index=True)
    kinds = np.arange(len(order)) % len(_SUBTYPES)
    edges = np.stack([warehouse.column_source, warehouse.column_target, kinds]).astype("<i4")
    said = msgspec.json.encode([(True, kind, "", False, "") for kind in _SUBTYPES])
    with (
        connection.cursor() as cursor,
        cursor.copy("COPY derivations (claim, edges, kinds) FROM STDIN (FORMAT binary)") as copy,
    ):
        copy.set_types(["int4", "bytea", "bytea"])
        for claim, rows in zip(claims.tolist(), np.split(order, starts[1:]), strict=True):
            copy.write_row((claim, edges[:, rows].tobytes(), said))


def _load_rows_to_recurse(connection: psycopg.Connection, warehouse: Warehouse) -> None:
    """Write the column edges as rows, too: a recursive query cannot use packed edges."""
    connection.execute("CREATE UNLOGGED TABLE derives (id bigint, source int, target int)")
    if not len(warehouse.column_source):
        return
    values: dict[str, Values | int | bytes] = {
        "id": np.arange(1, len(warehouse.column_source) + 1),
        "source": warehouse.column_source,
        "target": warehouse.column_target,
    }
    copy_rows(connection, _DERIVES, values)


_DERIVES = tables.CatalogTable(
    "derives", (("id", "bigint"), ("source", "int"), ("target", "int")), ""
)


def _named(prefix: bytes, numbers: Numbers) -> Values:
    """Return `prefix` and the eight digits of each number."""
    text = np.empty((len(numbers), len(prefix) + 8), np.uint8)
    text[:, : len(prefix)] = np.frombuffer(prefix, np.uint8)
    for digit in range(8):
        text[:, -1 - digit] = numbers // 10**digit % 10 + ord("0")
    named: Values = text.view(f"S{text.shape[1]}")[:, 0]
    return named
