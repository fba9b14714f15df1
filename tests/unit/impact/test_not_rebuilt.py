"""One failing model is one line: what is only not rebuilt after it is counted apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.unit.impact.estate import Estate, effect_on, facet, hurt

from downriver.impact import decide
from downriver.impact.report import render_github, render_markdown, render_text
from downriver.model.changes import ColumnDrop, ColumnRename
from downriver.model.verdicts import EffectSeverity

if TYPE_CHECKING:
    from downriver.model.verdicts import Impact

CHILDREN = 26


@pytest.fixture
def impact(estate: Estate) -> Impact:
    """The drop of a column, where one model fails and a chain of models reads that model."""
    estate.table("raw", {"id": "integer", "amount": "integer"})
    estate.sql("root", "create table m0 as select id, amount from raw")
    for number in range(CHILDREN):
        sql = f"create table m{number + 1} as select id, amount from m{number}"
        estate.sql(f"child{number}", sql)
    return estate.lineage.impact([ColumnDrop(dataset="raw", column="amount")])


def test_only_the_model_that_fails_is_breaking(impact: Impact) -> None:
    assert [effect.name for effect in impact.breaking] == ["m0"]
    assert len(impact.not_rebuilt) == CHILDREN
    assert impact.warnings == []


def test_each_names_the_model_that_fails(impact: Impact) -> None:
    (root,) = impact.breaking
    assert all(effect.because_of == [root.consumer] for effect in impact.not_rebuilt)


@pytest.mark.parametrize("render", [render_text, render_markdown, render_github])
def test_a_report_lists_consumers_that_are_not_rebuilt_in_one_line(
    impact: Impact, render: object
) -> None:
    assert callable(render)
    report = render(decide(impact))
    lines = [line for line in report.splitlines() if "not rebuilt until this is fixed" in line]
    assert len(lines) == 1
    assert "m1, m2, m3, m4, m5, 21 more" in lines[0]
    assert not any("which is no longer updated" in line for line in report.splitlines())


def test_the_text_counts_them_apart(impact: Impact) -> None:
    assert f"NOT REBUILT: {CHILDREN} of them\n" in render_text(decide(impact))


def test_a_consumer_with_two_failing_parents_names_both(estate: Estate) -> None:
    estate.table("raw", {"id": "integer", "amount": "integer"})
    estate.sql("a", "create table a as select id, amount from raw")
    estate.sql("b", "create table b as select id, amount * 2 as twice from raw")
    estate.sql("both", "create table c as select a.amount, b.twice from a join b using (id)")
    found = estate.lineage.impact([ColumnDrop(dataset="raw", column="amount")])
    causes = {effect.consumer for effect in found.breaking}
    assert set(effect_on(found, "c").because_of) == causes
    assert len(causes) == 2


def test_a_model_that_runs_without_the_column_names_the_readers_that_fail(estate: Estate) -> None:
    estate.table("raw", {"id": "integer", "amount": "integer"})
    estate.sql("first", "create table a as select * from raw")
    estate.sql("second", "create table b as select * from a")
    estate.sql("last", "create table c as select amount from b")
    found = estate.lineage.impact([ColumnRename(dataset="raw", column="amount", to="total")])
    assert hurt(found) == {"a": "changes", "b": "changes", "c": "fails"}
    for name in ("a", "b"):
        effect = effect_on(found, name)
        assert effect.severity is EffectSeverity.WARNING
        assert effect.reason == "no longer outputs amount, which breaks c"


def test_an_ambiguous_edge_alone_breaks_no_consumer(estate: Estate) -> None:
    estate.table("raw", {"id": "integer", "amount": "integer"})
    for confidence in ("ambiguous", "exact"):
        fields = {
            "x": {
                "inputFields": [
                    {
                        "namespace": "db", "name": "raw", "field": "amount",
                        "transformations": [
                            {"type": "DIRECT", "subtype": "IDENTITY", "confidence": confidence}
                        ],
                    }
                ]
            }
        }  # fmt: skip
        estate.job(confidence, ["raw"], [f"out_{confidence}"], lineage=facet(fields=fields))
    found = estate.lineage.impact([ColumnDrop(dataset="raw", column="amount")])
    assert hurt(found) == {"ambiguous": "may_fail", "exact": "fails"}
    assert effect_on(found, "ambiguous").severity is EffectSeverity.WARNING


def test_a_recommendation_is_never_empty(impact: Impact) -> None:
    impact.change_types = []
    assert decide(impact).recommendation
