"""Columns that were added, dropped, renamed or retyped, and versions in use at the same time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.unit.govern.scenario import derives, micros, moment, output, run, schema, told

from downriver.govern.drift import DriftLimits, Inspector

if TYPE_CHECKING:
    from pathlib import Path

    from downriver.model.governance import Finding

BEFORE = {"id": "int", "customer_id": "bigint", "amount": "numeric", "note": "text"}


def writes(day: float, columns: dict[str, str], facets: dict[str, Any] | None = None) -> list[dict]:
    return run(
        "load", day, reads=["raw"], writes=[output("t", {**schema(**columns), **(facets or {})})]
    )


def found_at(folder: Path, events: list[dict], day: float, entity: str = "t") -> list[Finding]:
    with told(folder, events) as lineage, lineage.session.reading() as view:
        inspector = Inspector(*view, DriftLimits(), micros(day))
        return inspector.inspect(lineage.session.resolve(entity, view).node)


def kinds(findings: list[Finding]) -> dict[str, str]:
    return {finding.subject: finding.kind.value for finding in findings}


def test_a_new_a_dropped_and_a_retyped_column(tmp_path: Path) -> None:
    after = {"id": "bigint", "customer_id": "bigint", "amount": "numeric", "channel": "int"}
    events = [*writes(0, BEFORE), *writes(1, BEFORE), *writes(2, after)]
    found = found_at(tmp_path, events, 3)
    assert kinds(found) == {
        "note": "column_dropped", "channel": "column_added", "id": "column_retyped",
    }  # fmt: skip
    assert {finding.first_seen for finding in found} == {moment(2, 0.2)}
    assert all(finding.evidence[0].event for finding in found)


def test_a_rename_has_its_certainty_and_reasons(tmp_path: Path) -> None:
    after = {"id": "int", "cust_id": "bigint", "amount": "numeric", "note": "text"}
    events = [*writes(0, BEFORE), *writes(2, after)]
    (found,) = found_at(tmp_path, events, 3)
    assert (found.kind.value, found.expected, found.actual) == (
        "column_renamed", "customer_id", "cust_id",
    )  # fmt: skip
    assert found.confidence is not None
    assert 0.6 <= found.confidence < 0.9
    assert "both are bigint" in found.why


def test_lineage_makes_a_rename_surer_and_other_sources_make_it_none(tmp_path: Path) -> None:
    after = {"id": "int", "buyer": "bigint", "amount": "numeric", "note": "text"}
    same = [
        *writes(0, BEFORE, derives(customer_id="raw.cid")),
        *writes(2, after, derives(buyer="raw.cid")),
    ]
    (found,) = found_at(tmp_path / "same", same, 3)
    assert found.kind.value == "column_renamed"
    assert any("same columns" in reason for reason in found.why)
    other = [
        *writes(0, BEFORE, derives(customer_id="raw.cid")),
        *writes(2, after, derives(buyer="raw.salesman")),
    ]
    assert kinds(found_at(tmp_path / "other", other, 3)) == {
        "customer_id": "column_dropped", "buyer": "column_added",
    }  # fmt: skip


def test_columns_of_another_type_are_not_taken_for_renamed(tmp_path: Path) -> None:
    after = {"id": "int", "amount": "numeric", "note": "text", "country": "text"}
    found = found_at(tmp_path, [*writes(0, BEFORE), *writes(2, after)], 3)
    assert kinds(found) == {"customer_id": "column_dropped", "country": "column_added"}


def test_a_return_to_the_old_state_is_no_finding(tmp_path: Path) -> None:
    without = {name: kind for name, kind in BEFORE.items() if name != "note"}
    events = [*writes(0, BEFORE), *writes(2, without)]
    assert found_at(tmp_path, events, 2.5)
    assert found_at(tmp_path, [*events, *writes(3, BEFORE)], 3.5) == []


def test_a_change_that_has_held_for_long_is_the_new_normal(tmp_path: Path) -> None:
    without = {name: kind for name, kind in BEFORE.items() if name != "note"}
    events = [*writes(0, BEFORE), *writes(2, without), *writes(12, without)]
    assert found_at(tmp_path, events, 8.9)
    assert found_at(tmp_path, events, 12.5) == []


def test_a_reader_that_names_only_what_it_reads_drops_nothing_for_long(tmp_path: Path) -> None:
    part = {"id": "int"}
    events = [*writes(0, BEFORE), *writes(1, part), *writes(2, BEFORE), *writes(3, part)]
    assert found_at(tmp_path, events, 3.5) == []


def test_a_brand_new_dataset_is_no_drift(tmp_path: Path) -> None:
    assert found_at(tmp_path, writes(0, BEFORE), 1) == []
