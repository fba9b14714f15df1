"""Bronze to gold on files, with repetitions, bad lines, interruptions and a second writer."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from tests.openlineage import dataset, encode, parsed, run_event, schema, source
from tests.unit.events.test_order_free import catalog
from tests.unit.lake.dumps import dump

from downriver.errors import LakeBusyError, LakeNotFoundError
from downriver.lake.publish import Published, publish
from downriver.lake.snapshots import list_versions, read_current, read_version
from downriver.store import open_store

if TYPE_CHECKING:
    from pathlib import Path

    from downriver.lake.runner import Lake

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::ResourceWarning")]

LINEAGE = {
    "fields": {
        "total": {
            "inputFields": [
                source("orders", "amount", {"type": "DIRECT", "subtype": "AGGREGATION"})
            ]
        }
    }
}
ORDERS = dataset("orders", {"schema": schema(id="int", amount="double")})
TOTALS = dataset(
    "totals",
    {
        "schema": schema(total="double"),
        "columnLineage": LINEAGE,
        "tags": {"tags": [{"key": "pii", "value": "no", "source": "test"}]},
    },
    outputFacets={
        "outputStatistics": {"rowCount": 7, "size": 70},
        "dataQualityAssertions": {
            "assertions": [{"assertion": "not_null", "column": "total", "success": False}]
        },
    },
)
FIRST = [
    run_event("sum", "1", "START", "2026-01-01T00:00:00Z", inputs=[ORDERS]),
    run_event("sum", "1", "COMPLETE", "2026-01-01T00:01:00Z", inputs=[ORDERS], outputs=[TOTALS]),
    run_event(
        "sum",
        "2",
        "FAIL",
        "2026-01-02T00:01:00Z",
        inputs=[ORDERS],
        run_facets={"errorMessage": {"message": "disk full", "programmingLanguage": "sql"}},
    ),
]
WIDER = dataset("orders", {"schema": schema(id="int", amount="double", note="text")})
SECOND = [
    run_event("sum", "3", "COMPLETE", "2026-03-01T00:00:00Z", inputs=[WIDER]),
    run_event("report", "1", "COMPLETE", "2026-03-01T01:00:00Z", inputs=[dataset("totals")]),
]


def make(place: Path, spark, **options) -> Lake:
    from downriver.lake.runner import Lake

    return Lake(str(place), spark, **options)


def lines(*events: dict) -> bytes:
    return b"".join(encode(event) + b"\n" for event in events)


def facts_of(lake: Lake) -> dict:
    found = lake.tables().items()
    return dump({name.removeprefix("facts."): t for name, t in found if name.startswith("facts.")})


def server_catalog(folder: Path) -> dict:
    with closing(open_store(str(folder))) as store:
        return catalog(store, [[parsed(event) for event in [*FIRST, *SECOND]]])


@pytest.fixture(scope="module")
def built(spark, tmp_path_factory) -> Lake:
    """A lake that took in two files one after the other, each followed by a build."""
    folder = tmp_path_factory.mktemp("events")
    lake = make(tmp_path_factory.mktemp("lake"), spark)
    (folder / "first.jsonl").write_bytes(lines(*FIRST, FIRST[0]) + b"nonsense\n")
    first = lake.ingest([str(folder)])
    assert (first.rows_in, first.rows_out, first.duplicates, first.rejected) == (5, 3, 1, 1)
    lake.build()
    (folder / "second.jsonl").write_bytes(lines(FIRST[1], *SECOND))
    second = lake.ingest([str(folder)])
    assert (second.rows_in, second.rows_out, second.duplicates, second.rejected) == (3, 2, 1, 0)
    again = lake.ingest([str(folder)])
    assert (again.rows_in, again.rows_out) == (0, 0)
    lake.build()
    return lake


def rows(lake: Lake, sql: str) -> list[tuple]:
    return [tuple(row) for row in lake.query(sql).collect()]


def test_built_bit_by_bit_it_is_the_catalog_of_the_server(built, tmp_path):
    assert facts_of(built) == server_catalog(tmp_path)


def test_nothing_new_is_nothing_to_do(built):
    assert built.build() == []


def test_what_could_not_be_read_is_set_aside_with_its_place_and_reason(built):
    [(where, offset, body, reason)] = rows(
        built, "SELECT source, offset, string(body), reason FROM bronze_quarantine"
    )
    assert where.endswith("first.jsonl")
    assert offset == len(lines(*FIRST, FIRST[0]))
    assert body == "nonsense"
    assert "not valid JSON" in reason


def test_events_are_kept_as_sent(built):
    kept = rows(built, "SELECT body, digest, source FROM bronze_events")
    assert {bytes(row[0]) for row in kept} == {encode(event) for event in [*FIRST, *SECOND]}
    assert {bytes(row[1]) for row in kept} == {parsed(e).ref.digest for e in [*FIRST, *SECOND]}


def test_silver_says_how_runs_went(built):
    query = "SELECT job_name, run, state, seconds, error FROM silver_runs ORDER BY 1, 2"
    assert rows(built, query) == [
        ("report", "1", "complete", None, None),
        ("sum", "1", "complete", 60.0, None),
        ("sum", "2", "fail", None, "disk full"),
        ("sum", "3", "complete", None, None),
    ]


def test_silver_keeps_every_schema_a_dataset_has_had(built):
    query = """
        SELECT version, current, transform(fields, x -> x.path) FROM silver_schema_versions
        WHERE name = 'orders' ORDER BY version
    """
    assert rows(built, query) == [
        (1, False, ["id", "amount"]),
        (2, True, ["id", "amount", "note"]),
    ]
    query = "SELECT field, type, ordinal FROM silver_columns WHERE name = 'orders' ORDER BY 3"
    assert rows(built, query) == [("id", "int", 1), ("amount", "double", 2), ("note", "text", 3)]


def test_silver_reads_statistics_quality_and_tags(built):
    query = "SELECT name, run, role, rows, bytes FROM silver_statistics"
    assert rows(built, query) == [("totals", "1", "output", 7, 70)]
    query = "SELECT name, run, assertion, column, success FROM silver_quality"
    assert rows(built, query) == [("totals", "1", "not_null", "total", False)]
    query = "SELECT kind, name, key, value FROM silver_tags"
    assert rows(built, query) == [("dataset", "totals", "pii", "no")]


def test_gold_says_which_edges_still_hold(built):
    query = "SELECT kind, source_name, target_name, job_name, status FROM gold_edges ORDER BY 1, 2"
    assert rows(built, query) == [
        ("reads", "orders", "sum", "sum", "active"),
        ("reads", "totals", "report", "report", "active"),
        ("writes", "sum", "totals", "sum", "stale"),
    ]
    query = (
        "SELECT source_name, source_field, target_field, kinds, direct, jobs FROM gold_column_edges"
    )
    assert rows(built, query) == [("orders", "amount", "total", ["AGGREGATION"], True, 1)]


def test_gold_says_how_far_each_dataset_and_column_reaches(built):
    query = """
        SELECT name, downstream_datasets, downstream_jobs, downstream_depth, upstream_datasets,
               upstream_jobs, upstream_depth FROM gold_reach ORDER BY name
    """
    assert rows(built, query) == [("orders", 1, 2, 2, 0, 0, 0), ("totals", 0, 1, 1, 1, 1, 1)]
    query = "SELECT name, field, downstream_columns, upstream_columns FROM gold_column_reach"
    assert sorted(rows(built, query)) == [
        ("orders", "amount", 1, 0),
        ("orders", "id", 0, 0),
        ("orders", "note", 0, 0),
        ("totals", "total", 0, 1),
    ]


def test_gold_says_how_datasets_and_jobs_are_doing(built):
    query = """
        SELECT name, readers, writers, unknown_downstreams, orphan, dead, has_schema,
               has_column_lineage FROM gold_dataset_health ORDER BY name
    """
    assert rows(built, query) == [
        ("orders", 1, 0, 0, False, False, True, False),
        ("totals", 1, 1, 1, False, False, True, True),
    ]
    query = "SELECT job_name, runs, failed, failure_rate, last_error FROM gold_failure_rates"
    assert sorted(rows(built, query)) == [
        ("report", 1, 0, 0.0, None),
        ("sum", 3, 1, 1 / 3, "disk full"),
    ]
    query = "SELECT name, version, added, removed, retyped FROM gold_schema_drift"
    assert rows(built, query) == [("orders", 2, ["note"], [], [])]
    query = "SELECT name, writes, usual_seconds, late_seconds FROM gold_freshness"
    month = 59 * 86400 - 60.0
    assert rows(built, query) == [("totals", 2, month, 0.0)]
    query = """
        SELECT datasets, with_schema, written_with_column_lineage, jobs_with_outputs
        FROM gold_coverage
    """
    assert rows(built, query) == [(2, 2, 1, 1)]


def test_blocks_counted_as_tasks_count_the_same(spark, built, tmp_path, monkeypatch):
    from downriver.lake import reach
    from downriver.lake.parquet import Parquet
    from downriver.lake.places import Folder

    monkeypatch.setattr(reach, "_WORTH_SPREADING", 0)
    parquet = Parquet(Folder(str(tmp_path)), spark)
    count = reach.counting_on(spark, parquet, "blocks")
    facts = built.tables()
    names = ("facts.nodes", "facts.edges", "facts.columns", "facts.derivations")
    made = reach.Reach(parquet, "reach", count).measure(*(facts[name] for name in names))
    assert list((tmp_path / "blocks").iterdir()), "the blocks were spread"
    for name, frame in made.items():
        assert sorted(frame.collect()) == sorted(facts[f"gold.{name}"].collect())


def test_an_earlier_version_is_still_there(built):
    versions = list_versions(built.folder)
    assert versions == [1, 2, 3, 4]
    before = built.tables(read_version(built.folder, 2))["gold.edges"]
    assert before.count() == 2


def test_two_versions_are_compared(built):
    found = built.diff(2, 4)
    changes = [
        (*tuple(row)[:2], row.source_name, row.target_name) for row in found["edges"].collect()
    ]
    assert sorted(changes) == [
        ("came", "reads", "totals", "report"),
        ("stale", "writes", "sum", "totals"),
    ]
    assert found["column_edges"].collect() == []


class Killed(BaseException):
    """Ends a pipeline at once, as a signal would."""


def killed_after(stage: str):
    def report(done) -> None:
        if done.stage == stage:
            raise Killed

    return report


def test_killed_in_a_build_and_started_again_the_result_is_the_same(spark, tmp_path):
    (tmp_path / "a.jsonl").write_bytes(lines(*FIRST, *SECOND))
    make(tmp_path / "lake", spark).ingest([str(tmp_path / "a.jsonl")])
    for stage in ("facts", "gold"):
        interrupted = make(tmp_path / "lake", spark, report=killed_after(stage))
        with pytest.raises(Killed):
            interrupted.build()
        assert read_current(interrupted.folder).tables == {}
    lake = make(tmp_path / "lake", spark)
    lake.build()
    assert facts_of(lake) == server_catalog(tmp_path / "store")


def test_from_the_log_of_a_store_to_another_store(spark, tmp_path):
    lake = make(tmp_path / "lake", spark)
    with closing(open_store(str(tmp_path / "one"))) as one:
        first = catalog(one, [[parsed(event) for event in FIRST]])
        assert first["runs"]
        assert lake.ingest_log(one).rows_out == len(FIRST)
        assert lake.ingest_log(one).rows_in == 0
        expected = catalog(one, [[parsed(event) for event in SECOND]])
        assert lake.ingest_log(one).rows_out == len(SECOND)
    with closing(open_store(str(tmp_path / "other"))) as other:
        assert publish(lake.folder, other) == Published(len(FIRST) + len(SECOND), 0)
        assert catalog(other, []) == expected


def test_of_two_that_write_at_once_one_is_told_to_try_again(spark, tmp_path):
    (tmp_path / "a.jsonl").write_bytes(lines(*FIRST))
    lake = make(tmp_path / "lake", spark)
    (tmp_path / "lake" / "versions").mkdir(parents=True)

    def other_commits(done) -> None:
        (tmp_path / "lake" / "versions" / "00000002.json").write_bytes(b"{}")

    lake.ingest([str(tmp_path / "a.jsonl")])
    slower = make(tmp_path / "lake", spark, report=other_commits)
    with pytest.raises(LakeBusyError, match="try again"):
        slower.build()


def test_a_place_without_a_lake(spark, tmp_path):
    with pytest.raises(LakeNotFoundError, match="no lake"):
        make(tmp_path, spark).build()
