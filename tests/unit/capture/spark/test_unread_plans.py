"""A failure of capture is a blind spot in an event, and no exception. No JVM is needed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from downriver.capture.spark import plan_text, session
from downriver.capture.spark.actions import DatasetLocation, PlanLeaf, Sink, SparkAction
from downriver.capture.spark.context import RunContext
from downriver.capture.spark.events import SparkEngine
from downriver.capture.spark.executions import Execution
from downriver.capture.spark.publisher import ActionPublisher
from downriver.model.ids import DatasetId, JobId, RunId

ORDERS, COPIED = DatasetId("file", "/orders"), DatasetId("file", "/copied")
SCHEMA = '{"type":"struct","fields":[]}'


class Collected:
    """An emitter that keeps its events, and a listener whose queries cannot be read."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def emit(self, *events: Any) -> None:
        self.texts += [event.raw.decode() for event in events]

    def take(self, execution: Execution) -> None:
        raise ValueError(execution.name)


def publisher(collected: Collected) -> ActionPublisher:
    context = RunContext(RunId(JobId("spark", "app"), "1"))
    engine = SparkEngine("4.1.0", "app-1")
    return ActionPublisher(context, engine, collected, collected, lambda _: None)  # type: ignore[arg-type]


def execution(name: str, *, is_command: bool = False) -> Execution:
    return Execution(1, 1, name, 1, 1, "session", "QueryExecution", "Filter", is_command)


def test_a_write_with_a_plan_of_an_unknown_form_is_reported_with_its_datasets() -> None:
    collected = Collected()
    action = SparkAction(
        name="save", ended_at=1, duration_ns=1, columns=[1], plan='{"not": "a tree"}',
        leaves=[PlanLeaf(1, [DatasetLocation(ORDERS)])], sink=Sink(DatasetLocation(COPIED)),
    )  # fmt: skip
    publisher(collected).publish(action)
    ended = collected.texts[-1]
    assert "/orders" in ended
    assert "/copied" in ended
    assert "unread_plan" in ended


def test_a_query_that_could_not_be_read_is_a_blind_spot() -> None:
    collected = Collected()
    publisher(collected)._take(execution("collect"))
    publisher(collected)._take(execution("command", is_command=True))
    assert "unread_plan" in collected.texts[1]
    assert "unknown_write" in collected.texts[3]
    before = len(collected.texts)
    publisher(collected)._take(execution("rdd"))
    assert len(collected.texts) == before


def _plan(monkeypatch: pytest.MonkeyPatch, text: str) -> plan_text.PlanText:
    java = SimpleNamespace(plan=lambda *_: text)
    made = SimpleNamespace(newInstance=lambda: java)
    monkeypatch.setattr(plan_text, "compile_class", lambda *_: made)
    return plan_text.PlanTextReader(None).plan(None, merged=True, largest=1)


def test_delimiters_of_hive_in_a_query_do_not_break_its_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tree = "00 Project [split(a#1, \x02, -1) AS b#2]\n01 +- Relation [a#1]\n"
    parts = ("b#2", tree, SCHEMA, '[{"class":"x"}]', "", "x.Relation Relation [a#1] \x02", "true")
    found = _plan(monkeypatch, "\x02".join(parts))
    assert (found.tree, found.schema, found.json) == (tree, SCHEMA, '[{"class":"x"}]')
    assert [leaf.kind for leaf in found.leaves] == ["Relation"]
    assert not found.has_subqueries


def test_a_wide_plan_has_only_its_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    found = _plan(monkeypatch, "a#1\x01b#2" + "\x02" * 6)
    assert (found.columns, found.tree, found.leaves) == ([1, 2], "", [])


def test_no_listener_stays_in_a_jvm_that_cannot_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    listeners: list[object] = []

    def refuse(*_: object, **__: object) -> None:
        raise TypeError("'JavaPackage' object is not callable")

    monkeypatch.setattr(session, "ExecutionListener", listeners.append)
    monkeypatch.setattr(session, "ActionReader", refuse)
    spark = SimpleNamespace(_jsparkSession=object(), sparkContext=SimpleNamespace(_gateway=None))
    with pytest.raises(TypeError):
        session.TrackedSession(spark, Collected(), job=None, namespace=None)  # type: ignore[arg-type]
    assert listeners == []
