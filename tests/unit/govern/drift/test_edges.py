"""Edges of a job that appeared, and edges that vanished."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.unit.govern.drift.test_schema import found_at
from tests.unit.govern.scenario import derives, moment, output, run

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from downriver.model.governance import Finding

JOB = "job:etl:load"


def daily(days: int, reads: Sequence[str], start: int = 0, **facets: str) -> list[dict]:
    return [
        event
        for day in range(start, start + days)
        for event in run(
            "load", day, reads=reads, writes=[output("t", derives(**facets) if facets else None)]
        )
    ]


def edges(findings: list[Finding]) -> list[tuple[str, str]]:
    return sorted((f.kind.value, f.subject.rpartition(":")[2]) for f in findings)


def test_an_input_that_was_never_there_appears_and_settles(tmp_path: Path) -> None:
    events = [*daily(6, ["a"]), *daily(20, ["a", "b"], 6)]
    (found,) = found_at(tmp_path, events, 7, JOB)
    assert edges([found]) == [("edge_appeared", "b")]
    assert found.first_seen == moment(6, 0.2)
    assert found.evidence[0].run == "load-6"
    assert found_at(tmp_path, events, 15, JOB) == []


def test_an_input_that_three_runs_did_not_read_has_vanished(tmp_path: Path) -> None:
    events = [*daily(6, ["a", "b"]), *daily(4, ["a"], 6)]
    assert found_at(tmp_path, events, 7.5, JOB) == []  # two runs: it may come back
    (found,) = found_at(tmp_path, events, 9.5, JOB)
    assert edges([found]) == [("edge_vanished", "b")]
    assert found.first_seen == moment(6)
    assert "not in the 4 runs since" in found.message


def test_an_edge_that_reappears_has_not_vanished(tmp_path: Path) -> None:
    events = [*daily(6, ["a", "b"]), *daily(4, ["a"], 6), *daily(1, ["a", "b"], 10)]
    assert found_at(tmp_path, events, 10.5, JOB) == []


def test_runs_without_any_inputs_give_no_finding_about_an_edge(tmp_path: Path) -> None:
    events = [*daily(6, ["a", "b"]), *daily(5, [], 6)]
    assert found_at(tmp_path, events, 11, JOB) == []


def test_a_new_job_has_no_news_and_a_folder_a_day_is_none(tmp_path: Path) -> None:
    assert found_at(tmp_path / "new", daily(2, ["a"]), 2, JOB) == []
    rotating = [e for day in range(12) for e in run("load", day, reads=[f"log/day={day}"])]
    assert found_at(tmp_path / "rotating", rotating, 12, JOB) == []


def test_changed_sources_of_columns_are_one_finding_in_each_direction(tmp_path: Path) -> None:
    events = [
        *daily(6, ["a"], total="a.net", tax="a.tax", id="a.id"),
        *daily(2, ["a"], 6, total="a.gross", tax="a.vat", id="a.id"),
    ]
    found = found_at(tmp_path, events, 8)
    assert sorted((f.kind.value, f.why) for f in found) == [
        ("edge_appeared", ["tax <- a.vat", "total <- a.gross"]),
        ("edge_vanished", ["tax <- a.tax", "total <- a.net"]),
    ]
    assert {f.entity.rpartition(":")[2] for f in found} == {"t"}
    assert {f.first_seen for f in found} == {moment(6, 0.2)}
    assert any("column tax now derives from a.vat, and 1 more" in f.message for f in found)


def test_a_job_whose_columns_have_other_sources_every_time_is_no_news(tmp_path: Path) -> None:
    events = [e for day in range(8) for e in daily(1, ["a"], day, total=f"a.c{day}")]
    assert found_at(tmp_path, events, 8) == []
