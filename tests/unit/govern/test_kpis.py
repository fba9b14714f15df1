"""KPIs equal the counts of a small graph that was counted manually."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.openlineage import dataset, dataset_event, encode, run_event
from tests.unit.govern.scenario import derives, output, owned_by, run, schema, tagged, told

from downriver.errors import InvalidRequestError
from downriver.govern.kpi_limits import find_list
from downriver.model.governance import Kpis
from downriver.service import Lineage

if TYPE_CHECKING:
    from pathlib import Path


def shop() -> list[dict]:
    return [
        *run("clean", 0, reads=["raw"], writes=[output("clean", {
            **schema(id="int", email="text"), **derives(id="raw.id", email="raw.mail"),
            **owned_by("ann"),
        })]),
        *run("sum", 0, reads=["clean"], writes=[output("mart", {
            **schema(n="int", hash="text", none="int"),
            **derives(n="#clean.id", hash="!clean.email"), **tagged("certified"),
        })]),
        *run("push", 0, reads=["mart"]),
        *run("load", 0, writes=[output("lonely", schema(x="int"))], state="FAIL"),
        dataset_event("raw", {**schema(id="int", mail="text"), **tagged(mail="pii"),
                              "documentation": {"description": "as it comes"}}),
        dataset_event("orphan"),
    ]  # fmt: skip


def test_every_figure_is_what_a_person_would_count(tmp_path: Path) -> None:
    with told(tmp_path, shop()) as lineage:
        found = lineage.govern.kpis()
    assert (found.datasets, found.jobs) == (5, 4)
    assert found.lineage_coverage.count == 8  # all but the orphan
    assert (found.upstream_coverage.count, found.upstream_coverage.total) == (2, 3)
    # clean.id, clean.email, mart.n, mart.hash of those and mart.none, lonely.x
    assert (found.column_coverage.count, found.column_coverage.total) == (4, 6)
    assert (found.owner_coverage.count, found.documentation_coverage.count) == (1, 1)
    assert [o.rpartition(":")[2] for o in found.orphans.examples] == ["orphan"]
    assert [o.rpartition(":")[2] for o in found.unknown_downstreams.examples] == ["mart"]
    assert found.jobs_without_inputs.examples == ["job:etl:load"]
    assert found.certified.count == 1
    assert found.certified_path_integrity.percent == 100.0
    assert found.pii_columns.count == 1
    assert [c.rpartition(":")[2] for c in found.pii_reach.examples] == ["email"]
    assert found.failing_jobs.examples == ["job:etl:load"]
    top = found.blast_radius.top[0]
    assert (top.dataset.rpartition(":")[2], top.datasets, top.jobs) == ("raw", 2, 3)
    assert (found.blast_radius.median, found.blast_radius.largest) == (1.0, 5)
    buckets = found.blast_radius.distribution
    assert [(one.least, one.most) for one in buckets] == [(0, 0), (1, 1), (2, 3), (4, 7)]
    assert sum(one.datasets for one in buckets) == found.datasets
    assert buckets[-1].datasets == 1  # raw


# Each share, and the list of the entities that it leaves out.
RESTS = {
    "lineage_coverage": "without_edges",
    "upstream_coverage": "without_source",
    "column_coverage": "columns_without_source",
    "schema_coverage": "without_schema",
    "owner_coverage": "without_owner",
    "documentation_coverage": "without_description",
    "certified_path_integrity": "certified_with_gaps",
}


def test_every_share_has_the_list_of_what_it_leaves_out(tmp_path: Path) -> None:
    with told(tmp_path, shop()) as lineage:
        found = lineage.govern.kpis(examples=1000)
        few = lineage.govern.kpis(examples=1)
    for share, rest in RESTS.items():
        counted, listed = getattr(found, share), getattr(found, rest)
        assert counted.total - counted.count == listed.count == len(listed.examples), share
        assert getattr(few, rest).examples == listed.examples[:1]
        assert find_list(found, share.replace("_", "-"), "--list") == listed
    names = {
        rest: [e.rpartition(":")[2] for e in getattr(found, rest).examples]
        for rest in RESTS.values()
    }
    assert names["without_edges"] == ["orphan"]
    assert names["without_source"] == ["lonely"]
    assert [e.rpartition(":")[2] for e in found.columns_without_source.examples] == [
        "lonely.x",
        "mart.none",
    ]
    assert "clean" not in names["without_owner"]
    with pytest.raises(InvalidRequestError, match="datasets"):
        find_list(found, "datasets", "--list")


def test_a_certified_dataset_that_an_unfed_job_feeds_has_no_integrity(tmp_path: Path) -> None:
    events = [
        *run("load", 0, writes=[output("raw")]),
        *run("sum", 0, reads=["raw"], writes=[output("mart", tagged("certified"))]),
    ]
    with told(tmp_path, events) as lineage:
        assert lineage.govern.kpis().certified_path_integrity.percent == 0.0
        (path,) = lineage.govern.certified_paths().datasets
    assert (path.intact, path.upstream) == (False, 3)
    assert [(gap.kind, gap.entity) for gap in path.gaps] == [("job_without_inputs", "job:etl:load")]


def test_a_certified_dataset_of_which_nothing_upstream_is_known_is_not_intact(
    tmp_path: Path,
) -> None:
    events = [dataset_event("alone", tagged("golden")), *shop()]
    with told(tmp_path, events) as lineage:
        found = lineage.govern.certified_paths()
    assert [(p.dataset.rpartition(":")[2], p.intact) for p in found.datasets] == [
        ("alone", False),
        ("mart", True),
    ]
    assert found.datasets[0].gaps[0].kind == "no_upstream"
    assert found.integrity.percent == 50.0


def test_an_empty_store_has_figures_too(tmp_path: Path) -> None:
    with Lineage.open(str(tmp_path)) as lineage:
        found = lineage.govern.kpis()
    assert isinstance(found, Kpis)
    assert found.lineage_coverage.percent is None
    assert found.blast_radius.top == []
    assert found.blast_radius.distribution == []


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    jobs=st.lists(
        st.tuples(
            st.lists(st.sampled_from("abcdef"), max_size=3, unique=True),
            st.lists(st.sampled_from("abcdef"), max_size=3, unique=True),
        ),
        max_size=6,
    )
)
def test_the_blast_radius_is_as_large_as_the_trace(
    tmp_path_factory, jobs: list[tuple[list[str], list[str]]]
) -> None:
    folder = tmp_path_factory.mktemp("kpis")
    events = [
        run_event(f"j{n}", inputs=[dataset(i) for i in reads], outputs=[dataset(o) for o in writes])
        for n, (reads, writes) in enumerate(jobs)
    ]
    with Lineage.open(str(folder)) as lineage:
        lineage.ingest([encode(event) for event in events])
        for blast in lineage.govern.kpis().blast_radius.top:
            traced = lineage.trace(blast.dataset)
            assert blast.downstream == len(traced.nodes) - 1


def typed(integration: str, kind: str) -> dict:
    return {"jobType": {"integration": integration, "jobType": kind, "processingType": "BATCH"}}


def test_a_test_of_a_dataset_is_no_unknown_downstream(tmp_path: Path) -> None:
    checked = {**dataset("by_suite"), "inputFacets": {
        "dataQualityAssertions": {"assertions": [{"assertion": "not_null", "success": True}]}
    }}  # fmt: skip
    events = [
        *run("build", 0, reads=["raw"], writes=[output("by_dbt"), output("by_suite")]),
        *run("not_null_id", 0, reads=["by_dbt"], job_facets=typed("DBT", "TEST")),
        *run("suite", 0, reads=[checked]),
        *run("push", 0, reads=["raw"], job_facets=typed("AIRFLOW", "TASK")),
    ]
    with told(tmp_path, events) as lineage:
        found = lineage.govern.kpis().unknown_downstreams
    assert [o.rpartition(":")[2] for o in found.examples] == ["raw"]


def test_a_model_on_a_seed_has_a_complete_path(tmp_path: Path) -> None:
    events = [
        *run("seed", 0, writes=[output("codes")], job_facets=typed("DBT", "SEED")),
        *run("sum", 0, reads=["codes"], writes=[output("mart", tagged("certified"))]),
    ]
    with told(tmp_path, events) as lineage:
        found = lineage.govern.kpis()
        (path,) = lineage.govern.certified_paths().datasets
    assert path.intact
    assert found.certified_path_integrity.percent == 100.0
    assert (found.upstream_coverage.count, found.upstream_coverage.total) == (2, 2)
    assert found.jobs_without_inputs.count == 0
