"""Consumers whose logic is not SQL: by column edges and code, else by tables, and labelled so."""

from __future__ import annotations

from tests.unit.impact.estate import Estate, effect_on, facet, hurt

from downriver.model.changes import (
    ColumnAdd,
    ColumnDrop,
    ColumnRename,
    Deprecation,
    LogicChange,
    TableDrop,
    TypeChange,
)
from downriver.model.verdicts import EffectSeverity

COLUMNS = {"id": "int", "a": "int", "b": "int"}


def spark(**more: object) -> dict:
    return {"jobType": facet(integration="SPARK", jobType="JOB", processingType="BATCH"), **more}


def test_a_job_with_an_edge_from_the_column_breaks(estate: Estate) -> None:
    estate.table("t", COLUMNS)
    estate.job("copy", ["t"], ["o"], columns={"x": ["t.a"]}, facets=spark())
    effect = effect_on(estate.lineage.impact([ColumnDrop(dataset="t", column="a")]), "copy")
    assert effect.severity is EffectSeverity.BREAKING
    assert (effect.basis, effect.asset_type) == ("column_edges", "spark_job")
    assert effect.affected_references == ["a"]


def test_a_job_whose_edges_begin_elsewhere_is_untouched(estate: Estate) -> None:
    estate.table("t", COLUMNS)
    estate.job("copy", ["t"], ["o"], columns={"x": ["t.a"]})
    impact = estate.lineage.impact([ColumnDrop(dataset="t", column="b")])
    assert (impact.effects, impact.untouched) == ([], 1)


def test_the_loss_goes_on_along_column_edges_only(estate: Estate) -> None:
    estate.table("t", COLUMNS)
    estate.job("copy", ["t"], ["o"], columns={"x": ["t.a"], "y": ["t.b"]})
    estate.job("uses_x", ["o"], ["p"], columns={"z": ["o.x"]})
    estate.job("uses_y", ["o"], ["q"], columns={"z": ["o.y"]})
    impact = estate.lineage.impact([ColumnDrop(dataset="t", column="a")])
    assert hurt(impact) == {"copy": "fails", "uses_x": "not_rebuilt", "uses_y": "not_rebuilt"}
    assert effect_on(impact, "uses_x").path == ["t.a", "o.x"]


def test_without_column_edges_it_is_a_warning_by_tables_and_the_answer_is_incomplete(
    estate: Estate,
) -> None:
    estate.table("t", COLUMNS)
    estate.job("opaque", ["t"], ["o"])
    estate.job("after", ["o"], ["p"])
    impact = estate.lineage.impact([ColumnRename(dataset="t", column="a", to="c")])
    assert hurt(impact) == {"opaque": "may_fail", "after": "may_fail"}
    assert {effect.basis for effect in impact.effects} == {"table_edges"}
    assert {effect.severity for effect in impact.effects} == {EffectSeverity.WARNING}
    assert not impact.complete
    assert {spot.kind for spot in impact.blind_spots} == {"no_column_lineage"}


def test_a_table_that_goes_breaks_a_job_whatever_its_columns(estate: Estate) -> None:
    estate.table("t", COLUMNS)
    estate.job("opaque", ["t"], ["o"])
    effect = effect_on(estate.lineage.impact([TableDrop(dataset="t")]), "opaque")
    assert effect.severity is EffectSeverity.BREAKING


def test_a_new_column_does_not_break_a_job_with_unknown_columns(estate: Estate) -> None:
    estate.table("t", COLUMNS)
    estate.job("opaque", ["t"], ["o"])
    assert estate.lineage.impact([ColumnAdd(dataset="t", column="c")]).effects == []


def code(*references: dict, path: str = "jobs/job.py") -> dict:
    named = [{"namespace": "db", "name": "t", **reference} for reference in references]
    return {"downriver_code": facet(path=path, line=1, references=named)}


def test_a_reference_in_code_breaks_with_its_file_and_line(estate: Estate) -> None:
    estate.table("t", COLUMNS)
    reference = {"field": "a", "line": 7, "clause": "select", "text": 'df["a"]'}
    estate.job("script", ["t"], [], facets=code(reference))
    effect = effect_on(estate.lineage.impact([ColumnDrop(dataset="t", column="a")]), "script")
    assert effect.severity is EffectSeverity.BREAKING
    (found,) = effect.references
    assert (found.path, found.line, found.clause, found.text) == (
        "jobs/job.py", 7, "select", 'df["a"]',
    )  # fmt: skip


def test_code_that_uses_a_column_only_if_it_is_there_is_warned_about(estate: Estate) -> None:
    estate.table("t", COLUMNS)
    star = {"field": "*", "line": 3, "clause": "select", "conditional": True}
    maybe = {"field": "a", "line": 4, "clause": "select", "conditional": True}
    estate.job("script", ["t"], ["o"], facets=code(star, maybe))
    effect = effect_on(estate.lineage.impact([ColumnDrop(dataset="t", column="a")]), "script")
    assert effect.severity is EffectSeverity.WARNING
    assert effect.affected_references == ["a"]


def test_code_that_names_other_columns_is_untouched(estate: Estate) -> None:
    estate.table("t", COLUMNS)
    estate.job("script", ["t"], [], facets=code({"field": "b", "line": 1}))
    assert estate.lineage.impact([ColumnDrop(dataset="t", column="a")]).effects == []


def test_a_job_that_copies_every_column_passes_a_rename_on(estate: Estate) -> None:
    estate.table("t", COLUMNS)
    estate.job("copy", ["t"], ["o"], columns={"*": ["t.*"]})
    estate.sql("reader", "create table r as select a from o")
    impact = estate.lineage.impact([ColumnRename(dataset="t", column="a", to="c")])
    assert hurt(impact) == {"copy": "changes", "r": "fails"}


def test_values_change_along_edges(estate: Estate) -> None:
    estate.table("t", COLUMNS)
    estate.job("copy", ["t"], ["o"], columns={"x": ["t.a"]})
    estate.sql("reader", "create table r as select x from o")
    for change in (
        LogicChange(dataset="t", columns=["a"]),
        TypeChange(dataset="t", column="a", to="bigint"),
    ):
        assert hurt(estate.lineage.impact([change])) == {"copy": "changes", "r": "changes"}


def test_a_required_column_breaks_writers_of_the_table(estate: Estate) -> None:
    estate.table("t", COLUMNS)
    estate.job("fill", ["s"], ["t"], columns={"a": ["s.a"]})
    estate.job("opaque_fill", ["s2"], ["t"])
    impact = estate.lineage.impact([ColumnAdd(dataset="t", column="c", required=True)])
    assert hurt(impact) == {"fill": "fails", "opaque_fill": "may_fail"}


def test_owners_tags_and_the_last_run_come_with_an_effect(estate: Estate) -> None:
    estate.table("t", COLUMNS)
    estate.table("o", {"x": "int"}, tags={"certified": "true", "tier": "gold"}, owners=["team:bi"])
    estate.job(
        "copy", ["t"], ["o"], columns={"x": ["t.a"]}, at="2025-10-01T06:00:00Z",
        facets={"ownership": facet(owners=[{"name": "team:etl", "type": "OWNER"}])},
    )  # fmt: skip
    effect = effect_on(estate.lineage.impact([ColumnDrop(dataset="t", column="a")]), "copy")
    assert effect.owners == ["team:etl", "team:bi"]
    assert effect.certified
    assert effect.tags == ["certified", "tier:gold"]
    assert effect.last_run is not None
    assert effect.last_run.startswith("2025-10-01T06:00:00")


def test_a_quarterly_consumer_is_among_those_of_a_deprecation(estate: Estate) -> None:
    estate.table("t", COLUMNS)
    estate.job("daily", ["t"], ["o"], at="2026-03-30T00:00:00Z")
    estate.job("quarterly", ["t"], ["p"], at="2026-01-02T00:00:00Z")
    assert set(hurt(estate.lineage.impact([Deprecation(dataset="t")]))) == {"daily", "quarterly"}


def test_only_the_last_column_lineage_of_a_job_counts(estate: Estate) -> None:
    estate.table("t", COLUMNS)
    estate.job("copy", ["t"], ["o"], columns={"x": ["t.a"]}, at="2026-01-01T00:00:00Z")
    estate.job("copy", ["t"], ["o"], columns={"x": ["t.b"]}, at="2026-02-01T00:00:00Z")
    assert estate.lineage.impact([ColumnDrop(dataset="t", column="a")]).effects == []
