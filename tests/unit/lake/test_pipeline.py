"""Bronze to gold from files, with duplicates and unreadable lines."""

from __future__ import annotations

from contextlib import closing

import pytest
from tests.openlineage import dataset, dataset_event, encode, parsed, run_event, schema
from tests.unit.lake.orders import (
    FIRST,
    ORDERS,
    SECOND,
    facts_of,
    lines,
    make,
    rows,
    server_catalog,
    stated_tag,
)
from tests.unit.openlineage.test_order_free import catalog

from downriver.errors import LakeNotFoundError
from downriver.lake.bronze.store_log import PublishReport, publish
from downriver.lake.storage.tables import list_versions, read_version
from downriver.store import open_store

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::ResourceWarning")]


def test_incremental_builds_equal_the_catalog_of_the_server(built, tmp_path):
    assert facts_of(built) == server_catalog(tmp_path)


def test_a_build_without_new_events_does_nothing(built):
    assert built.build() == []


def test_unreadable_records_are_quarantined_with_position_and_reason(built):
    [(where, offset, body, reason)] = rows(
        built, "SELECT source, offset, string(body), reason FROM bronze_quarantine"
    )
    assert where.endswith("first.jsonl")
    assert offset == len(lines(*FIRST, FIRST[0]))
    assert body == "nonsense"
    assert "not valid JSON" in reason


def test_bronze_keeps_events_as_sent(built):
    kept = rows(built, "SELECT body, digest, source FROM bronze_events")
    assert {bytes(row[0]) for row in kept} == {encode(event) for event in [*FIRST, *SECOND]}
    assert {bytes(row[1]) for row in kept} == {parsed(e).ref.digest for e in [*FIRST, *SECOND]}


def test_silver_runs_have_state_times_and_error(built):
    query = "SELECT job_name, run, state, seconds, error FROM silver_runs ORDER BY 1, 2"
    assert rows(built, query) == [
        ("report", "1", "complete", None, None),
        ("sum", "1", "complete", 60.0, None),
        ("sum", "2", "fail", None, "disk full"),
        ("sum", "3", "complete", None, None),
    ]


def test_silver_keeps_all_schema_versions(built):
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
    query = "SELECT kind, name, field, key, value FROM silver_tags ORDER BY kind, key"
    assert rows(built, query) == [
        ("column", "orders", "Amount", "PII", "true"),
        ("dataset", "totals", None, "certified", ""),
        ("dataset", "totals", None, "pii", "no"),
    ]


def test_gold_edges_are_active_or_stale(built):
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


def test_gold_counts_the_reach_of_datasets_and_columns(built):
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


def test_gold_reports_the_health_of_datasets_and_jobs(built):
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


def test_gold_reports_certified_paths_and_the_reach_of_personal_data(built):
    query = """
        SELECT name, upstream_datasets, upstream_uncertified, upstream_failing, intact,
               uncertified_inputs FROM gold_certified_paths
    """
    assert rows(built, query) == [("totals", 1, 1, 0, False, ["orders"])]
    query = "SELECT name, field, tagged, pii_columns, pii_influences FROM gold_pii_reach ORDER BY 1"
    assert rows(built, query) == [
        ("orders", "amount", True, 0, 0),
        ("totals", "total", False, 1, 1),
    ]
    query = "SELECT name, tagged, upstream_pii FROM gold_pii_datasets ORDER BY 1"
    assert rows(built, query) == [("orders", True, 0), ("totals", False, 1)]


def test_statements_of_people_replace_the_labels_of_producers(spark, tmp_path):
    sent = {
        "ownership": {"owners": [{"name": "tool"}]},
        "documentation": {"description": "By a tool."},
        "tags": {"tags": [{"key": "domain", "value": "raw"}, {"key": "certified", "value": ""}]},
    }
    stated = {
        "downriver_stated_ownership": {"owners": [{"name": "ann"}]},
        **stated_tag("domain:sales"),
        **stated_tag("certified", present=False),
        **stated_tag("pii", "id"),
    }
    events = [
        dataset_event("orders", stated, "2026-01-01T00:00:00Z"),
        *(dataset_event(name, sent, "2026-01-02T00:00:00Z") for name in ("orders", "totals")),
        run_event("sum", "1", "COMPLETE", "2026-01-02T00:00:00Z", inputs=[ORDERS | {"facets": {
            "schema": schema(id="int")}}], outputs=[dataset("totals")]),
    ]  # fmt: skip
    (tmp_path / "events.jsonl").write_bytes(lines(*events))
    lake = make(tmp_path / "lake", spark)
    lake.ingest([str(tmp_path / "events.jsonl")])
    lake.build()
    assert rows(lake, "SELECT name, owners, description FROM silver_datasets ORDER BY 1") == [
        ("orders", ["ann"], "By a tool."),
        ("totals", ["tool"], "By a tool."),
    ]
    assert rows(lake, "SELECT name FROM gold_certified_paths") == [("totals",)]
    assert rows(lake, "SELECT name, field, tagged FROM gold_pii_reach") == [("orders", "id", True)]


def test_gold_has_daily_kpis(built):
    query = """
        SELECT string(day), datasets, jobs, edges, column_edges, with_column_lineage, new_edges,
               schema_changes, runs, failed_runs, failed_checks, failure_rate FROM gold_daily_kpis
        ORDER BY day
    """
    assert rows(built, query) == [
        ("2026-01-01", 2, 1, 2, 1, 1, 2, 0, 1, 0, 1, 0.0),
        ("2026-01-02", 2, 1, 2, 1, 1, 0, 0, 1, 1, 0, 1.0),
        ("2026-03-01", 2, 2, 3, 1, 1, 1, 1, 2, 0, 0, 0.0),
    ]


def test_blocks_counted_on_spark_give_the_same_counts(spark, built, tmp_path, monkeypatch):
    from downriver.lake.reach import counts
    from downriver.lake.reach.counts import ReachTables
    from downriver.lake.storage.files import Folder
    from downriver.lake.storage.tables import TableStorage

    monkeypatch.setattr(counts, "_MIN_DISTRIBUTED_WORK", 0)
    stored = TableStorage(Folder(str(tmp_path)), spark)
    facts = built.tables()
    made = ReachTables(stored, "reach", counts.block_counter(stored, "blocks"), facts).measure()
    assert list((tmp_path / "blocks").iterdir()), "the blocks were spread"
    for name, frame in made.items():
        assert sorted(frame.collect()) == sorted(facts[f"gold.{name}"].collect())


def test_an_earlier_version_stays_readable(built):
    versions = list_versions(built.folder)
    assert versions == [1, 2, 3, 4]
    before = built.tables(read_version(built.folder, 2))["gold.edges"]
    assert before.count() == 2


def test_two_versions_are_compared(built):
    found = built.diff("2", "4")
    changes = [
        (*tuple(row)[:2], row.source_name, row.target_name) for row in found["edges"].collect()
    ]
    assert sorted(changes) == [
        ("added", "reads", "totals", "report"),
        ("stale", "writes", "sum", "totals"),
    ]
    assert found["column_edges"].collect() == []


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
        assert publish(lake.folder, other) == PublishReport(len(FIRST) + len(SECOND), 0)
        assert catalog(other, []) == expected


def test_a_location_without_a_lake_is_an_error(spark, tmp_path):
    with pytest.raises(LakeNotFoundError, match="no lake"):
        make(tmp_path, spark).build()
