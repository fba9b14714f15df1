"""Builds of new events only give the tables that a build of all events gives."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace
from tests.openlineage import DATABASE, dataset, dataset_event, job_event, run_event, schema
from tests.unit.lake.orders import (
    FIRST,
    ORDERS,
    SECOND,
    TOTALS,
    facts_of,
    lines,
    make,
    stated_tag,
)

from downriver import __version__
from downriver.lake import schemas
from downriver.lake.incremental import can_increment, spark_settings
from downriver.lake.storage.runs import count_runs_to_merge
from downriver.lake.storage.tables import (
    BronzeBatch,
    LakeVersion,
    StoredTable,
    clean_versions,
    read_current_version,
)

if TYPE_CHECKING:
    from downriver.lake.runner import Lake

slow = pytest.mark.slow
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")

GOLDEN = Path(__file__).parents[2] / "golden" / "openlineage"

CHECKED = dataset(
    "totals",
    outputFacets={
        "dataQualityAssertions": {
            "assertions": [{"assertion": "not_null", "column": "total", "success": True}]
        }
    },
)
# A job declares checks of an input, without a run: in the facets of the dataset and of the input.
DECLARED = job_event(
    "audit",
    inputs=[
        dataset(
            "prices",
            {"dataQualityAssertions": {"assertions": [{"assertion": "fresh", "success": True}]}},
            inputFacets={
                "dataQualityAssertions": {"assertions": [{"assertion": "unique", "success": False}]}
            },
        )
    ],
)
RERUNS = [
    # Only repeats what is known: no new node, edge or column.
    run_event("sum", "4", "COMPLETE", "2026-03-02T00:01:00Z", inputs=[ORDERS], outputs=[TOTALS]),
    # Late: before the first event.
    run_event("sum", "0", "COMPLETE", "2025-12-31T00:00:00Z", inputs=[dataset("orders")]),
]
CHANGES = [
    # The completed run turns out to have failed, so `totals` has fewer completed writes.
    run_event("sum", "4", "FAIL", "2026-03-02T00:02:00Z"),
    run_event("sum", "5", "COMPLETE", "2026-03-03T00:00:00Z", outputs=[CHECKED]),
    # Late: an earlier schema, so the later ones get other numbers.
    run_event(
        "sum",
        "00",
        "COMPLETE",
        "2025-12-30T00:00:00Z",
        inputs=[dataset("orders", {"schema": schema(id="string")})],
    ),
    # A known name becomes an alias of a new one.
    run_event(
        "load",
        "1",
        "COMPLETE",
        "2026-03-03T01:00:00Z",
        outputs=[
            dataset(
                "s3_orders",
                {"symlinks": {"identifiers": [{"namespace": DATABASE, "name": "orders"}]}},
            )
        ],
    ),
]

REMOVALS = [
    # Facets that contain less than before. Neither has a new node, edge or column.
    dataset_event("s3_orders", {"symlinks": {"identifiers": []}}, "2026-03-04T00:00:00Z"),
    dataset_event("orders", {"tags": {"tags": []}}, "2026-03-05T00:00:00Z"),
    # A person sets a tag.
    dataset_event("orders", stated_tag("pii", "amount"), "2026-03-06T00:00:00Z"),
]


def version(new: int, folded: int, **changed: Any) -> LakeVersion:
    """Return a version of a lake that this release built, with events that are not folded."""
    batches = (BronzeBatch(1, "bronze/1", folded, 0, 0), BronzeBatch(2, "bronze/2", new, 0, 0))
    tables = {name: StoredTable(f"builds/1/{name}", 50) for name in schemas.BUILT}
    return replace(
        LakeVersion(batches=batches, folded=1, tables=tables, release=__version__, stale_days=30),
        **changed,
    )


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        (version(10, 100), True),
        (version(200, 100), False),
        (version(10, 0), True),  # expired: 50 runs are known
        (version(60, 0), False),
        (version(10, 100, release="0.0.9"), False),
        (version(10, 100, release="", stale_days=None), False),
        (version(10, 100, stale_days=7), False),  # the status of all edges may change
        (version(10, 100, tables={}), False),
    ],
)
def test_rows_are_added_to_tables_that_were_built_alike(base, expected):
    assert can_increment(base, 30) is expected


@pytest.mark.parametrize(
    ("new", "stored", "tasks"),
    [
        (0, 1_000, "1"),
        (500_000, 5_000_000, "3"),
        (2_000_000, 5_000_000, None),
        (10, 500_000_000, None),
    ],
)
def test_spark_chooses_the_tasks_in_a_large_lake(new, stored, tasks):
    chosen = spark_settings(new, stored)
    assert chosen.get("spark.sql.shuffle.partitions") == tasks
    interpreted = chosen.get("spark.sql.codegen.wholeStage") == "false"
    assert interpreted == (tasks is not None and new <= 100_000)


def contents(lake: Lake) -> dict[str, list[Any]]:
    """Return the sorted rows of all silver, gold and state tables."""
    return {
        name: sorted(map(repr, frame.collect()))
        for name, frame in lake.tables().items()
        if not name.startswith(("bronze.", "facts."))
    }


def ingest(lake: Lake, path: Path, body: bytes) -> None:
    path.write_bytes(body)
    lake.ingest([str(path)])


def different(one: dict[str, Any], other: dict[str, Any]) -> set[str]:
    assert one.keys() == other.keys()
    return {name for name in one if one[name] != other[name]}


@slow
def test_incremental_builds_give_the_tables_of_a_full_build(spark, tmp_path, monkeypatch):
    golden = b"".join(
        (case / "event.json").read_bytes().replace(b"\n", b" ") + b"\n"
        for case in sorted(GOLDEN.iterdir())
    )
    lake = make(tmp_path / "lake", spark)
    ingest(lake, tmp_path / "1.jsonl", golden + lines(*FIRST, *SECOND, DECLARED))
    lake.build()
    ingest(lake, tmp_path / "2.jsonl", lines(*RERUNS))
    before = read_current_version(lake.folder).tables
    stages = {stage.stage: stage for stage in lake.build()}
    after = read_current_version(lake.folder).tables
    assert (stages["facts"].rows_in, stages["reach"].rows_out) == (2, 0)
    assert after["gold.column_reach"] == before["gold.column_reach"], "the graph is the same"
    assert after["silver.runs"].path == before["silver.runs"].path, "old rows stay where they are"
    assert [run.rows for run in after["silver.runs"].newer] == [2]

    ingest(lake, tmp_path / "3.jsonl", lines(*CHANGES))
    stages = {stage.stage: stage for stage in lake.build()}
    assert stages["reach"].rows_out > 0, "there is a new job"
    for number, removal in enumerate(REMOVALS, 4):
        if number == 5:  # as in a lake with many rows
            monkeypatch.setattr("downriver.lake.incremental._MANY_ROWS", 0)
        ingest(lake, tmp_path / f"{number}.jsonl", lines(removal))
        stages = {stage.stage: stage for stage in lake.build()}
        assert stages["reach"].rows_out > 0, "no longer an alias, other personal data"
    facts, incremental = facts_of(lake), contents(lake)
    stored = read_current_version(lake.folder).tables
    for name, rows in incremental.items():
        assert stored[name].rows == len(rows), name

    assert clean_versions(lake.folder, 1).versions, "a version keeps the builds it refers to"
    kept = lake.tables()["silver.runs"].collect()
    assert sorted(map(repr, kept)) == incremental["silver.runs"]
    lake.build(full=True)
    assert facts_of(lake) == facts
    assert different(contents(lake), incremental) == set()
    assert set(incremental) == {name for name in schemas.BUILT if not name.startswith("facts.")}


@slow
def test_a_new_setting_changes_all_rows_and_duplicates_change_none(spark, tmp_path, monkeypatch):
    lake = make(tmp_path / "lake", spark)
    ingest(lake, tmp_path / "1.jsonl", lines(*FIRST, *SECOND))
    lake.build()
    before = read_current_version(lake.folder).tables
    ingest(lake, tmp_path / "2.jsonl", lines(*FIRST))
    assert lake.build() == []
    version = read_current_version(lake.folder)
    assert (version.unfolded, version.tables) == ((), before)

    monkeypatch.setenv("DOWNRIVER_STALE_DAYS", "3000")
    # `sum` has a stale edge, and no new event.
    ingest(lake, tmp_path / "3.jsonl", lines(run_event("other", outputs=[dataset("elsewhere")])))
    lake.build()
    changed = contents(lake)
    lake.build(full=True)
    assert different(contents(lake), changed) == set()


@pytest.mark.parametrize(
    ("rows", "merged"),
    [
        ([1_000_000], 0),
        ([1_000_000, 10_000], 0),
        ([1_000_000, 200_000], 0),
        ([1_000_000, 250_000], 2),
        ([1_000_000, 100_000, 50_000], 2),
        ([4_000_000, 500_000, 400_000, 120_000], 4),
        ([10, 10, 10], 0),
        ([10] * 9, 9),
        ([1_000_000, *[10] * 9], 9),
    ],
)
def test_runs_are_merged_when_they_are_large_or_many(rows, merged):
    assert count_runs_to_merge(rows) == merged
