"""A call of a tracked function is a run, whatever kind of function it is."""

from __future__ import annotations

import asyncio
import inspect
import json
import threading
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import pytest

from downriver import ColumnLineage, Dataset, track_lineage
from downriver.capture.functions import current_run
from downriver.errors import InvalidRequestError


class Collected:
    """An emitter that stores its events in a list."""

    def __init__(self):
        self.events = []

    def emit(self, event):
        self.events.append(event)

    @property
    def states(self):
        return [event["eventType"] for event in self.events]

    def of(self, name):
        return [event for event in self.events if event["job"]["name"].endswith(name)]


@pytest.fixture
def sent():
    return Collected()


RAW = Dataset("s3://lake", "raw/orders")
SILVER = Dataset("s3://lake", "silver/orders", [{"name": "id", "type": "int"}])


def test_a_call_is_a_start_and_a_complete(sent):
    @track_lineage(inputs=[RAW], outputs=[SILVER], job_namespace="production", emitter=sent)
    def clean_orders(day):
        """Clean."""
        return day

    assert clean_orders("monday") == "monday"
    start, complete = sent.events
    assert (start["eventType"], start["inputs"], start["outputs"]) == ("START", [], [])
    assert complete["eventType"] == "COMPLETE"
    assert start["run"]["runId"] == complete["run"]["runId"]
    assert complete["job"]["namespace"] == "production"
    assert [(d["namespace"], d["name"]) for d in complete["inputs"]] == [
        ("s3://lake", "raw/orders")
    ]
    (output,) = complete["outputs"]
    assert output["facets"]["schema"]["fields"] == [{"name": "id", "type": "int"}]
    assert (clean_orders.__name__, clean_orders.__doc__) == ("clean_orders", "Clean.")
    assert list(inspect.signature(clean_orders).parameters) == ["day"]


FIELDS = [{"name": "id", "type": "int"}]


@dataclass
class ClientDataset:
    """As the datasets of OpenLineage's client are."""

    namespace: str
    name: str
    facets: dict[str, Any]


@dataclass
class Asset:
    """As the assets of Airflow are."""

    uri: str
    name: str


@pytest.mark.parametrize(
    ("given", "namespace", "name"),
    [
        ({"namespace": "snowflake", "name": "public.customers"}, "snowflake", "public.customers"),
        ({"namespace": "s3://lake", "name": "{day}/x"}, "s3://lake", "monday/x"),
        ({"name": "table:orders"}, "default", "orders"),
        (ClientDataset("db", "orders", {"schema": {"fields": FIELDS}}), "db", "orders"),
        (Asset("s3://lake/raw/orders", "orders"), "s3://lake", "raw/orders"),
        ("s3a://lake/raw/orders/", "s3://lake", "raw/orders"),
        ("/data/raw/orders/", "file", "/data/raw/orders"),
        (PurePosixPath("/data/raw/orders"), "file", "/data/raw/orders"),
        ("orders", "default", "orders"),
    ],
    ids=lambda value: str(value)[:40],
)
@pytest.mark.parametrize("several", [False, True])
def test_a_dataset_is_declared_in_any_form(sent, given, namespace, name, several):
    @track_lineage(inputs=[given] if several else given, outputs=[SILVER], emitter=sent)
    def clean(day):
        return day

    clean("monday")
    (read,) = sent.events[-1]["inputs"]
    assert (read["namespace"], read["name"]) == (namespace, name)
    fields = read.get("facets", {}).get("schema", {}).get("fields", [])
    assert fields == (FIELDS if isinstance(given, ClientDataset) else [])


@pytest.mark.parametrize("given", [{"namespace": "db"}, 7, {"name": ""}])
def test_what_names_no_dataset_is_an_error_when_it_is_declared(sent, given):
    with pytest.raises(InvalidRequestError, match="names no dataset; write"):
        track_lineage(inputs=[given], emitter=sent)


def test_a_failed_call_has_an_error_and_no_lineage(sent):
    @track_lineage([RAW], [SILVER], emitter=sent)
    def broken():
        raise ValueError("no such column")

    with pytest.raises(ValueError, match="no such column"):
        broken()
    assert sent.states == ["START", "FAIL"]
    fail = sent.events[1]
    assert (fail["inputs"], fail["outputs"]) == ([], [])
    told = fail["run"]["facets"]["errorMessage"]
    assert told["message"] == "ValueError: no such column"
    assert told["programmingLanguage"] == "python"
    assert "in broken" in told["stackTrace"]


def test_a_stopped_call_is_aborted(sent):
    @track_lineage([RAW], [SILVER], emitter=sent)
    def stopped():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert sent.states == ["START", "ABORT"]


def test_a_coroutine_is_a_run_until_it_ends(sent):
    @track_lineage([RAW], [SILVER], emitter=sent)
    async def load():
        await asyncio.sleep(0)
        assert sent.states == ["START"]
        return 3

    assert inspect.iscoroutinefunction(load)
    assert asyncio.run(load()) == 3
    assert sent.states == ["START", "COMPLETE"]


def test_a_generator_runs_from_the_first_value_to_the_last(sent):
    @track_lineage([RAW], [SILVER], emitter=sent)
    def rows(count):
        got = []
        for number in range(count):
            got.append((yield number))
        return got

    assert inspect.isgeneratorfunction(rows)
    values = rows(2)
    assert sent.states == []
    assert next(values) == 0
    assert values.send("a") == 1
    with pytest.raises(StopIteration) as end:
        values.send("b")
    assert end.value.value == ["a", "b"]
    assert sent.states == ["START", "COMPLETE"]


def test_an_exception_thrown_into_a_generator_reaches_it(sent):
    @track_lineage([RAW], [SILVER], emitter=sent)
    def rows():
        try:
            yield 1
        except KeyError:
            yield 2

    values = rows()
    next(values)
    assert values.throw(KeyError("x")) == 2
    values.close()
    assert sent.states == ["START", "COMPLETE"]


def test_a_generator_that_fails_is_a_failed_run(sent):
    @track_lineage([RAW], [SILVER], emitter=sent)
    def rows():
        yield 1
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        list(rows())
    assert sent.states == ["START", "FAIL"]


def test_between_two_values_the_callers_run_is_current(sent):
    @track_lineage(emitter=sent)
    def rows():
        yield current_run().job.name
        yield current_run().job.name

    @track_lineage(emitter=sent)
    def outer():
        return [(inner, current_run().job.name) for inner in rows()]

    for inner, around in outer():
        assert inner.endswith("rows")
        assert around.endswith("outer")


def test_an_async_generator_is_a_run(sent):
    @track_lineage([RAW], [SILVER], emitter=sent)
    async def rows():
        for number in range(3):
            yield number

    async def collect():
        return [number async for number in rows()]

    assert inspect.isasyncgenfunction(rows)
    assert asyncio.run(collect()) == [0, 1, 2]
    assert sent.states == ["START", "COMPLETE"]


def test_methods_of_every_kind(sent):
    class Jobs:
        scale = 2

        @track_lineage(emitter=sent)
        def method(self, x):
            return self.scale * x

        @track_lineage(emitter=sent)
        @classmethod
        def of_class(cls, x):
            return cls.scale * x

        @classmethod
        @track_lineage(emitter=sent)
        def inside_class(cls, x):
            return cls.scale * x

        @track_lineage(emitter=sent)
        @staticmethod
        def static(x):
            return x

    jobs = Jobs()
    assert (jobs.method(3), jobs.of_class(4), Jobs.inside_class(5), Jobs.static(6)) == (6, 8, 10, 6)
    assert sent.states == ["START", "COMPLETE"] * 4
    assert sent.events[0]["job"]["name"].endswith("Jobs.method")


def test_values_are_taken_from_the_arguments(sent):
    @track_lineage(["s3://lake/raw/{table}"], ["table:{schema}.{table}"], emitter=sent)
    def load(table, *, schema="silver", **options):
        return table

    load("orders")
    load("items", schema="gold")
    ends = [
        (event["inputs"][0]["name"], event["outputs"][0]["name"])
        for event in sent.events
        if event["eventType"] == "COMPLETE"
    ]
    assert ends == [("raw/orders", "silver.orders"), ("raw/items", "gold.items")]


def test_an_invalid_template_does_not_fail_the_function(sent):
    @track_lineage(["table:{nothing}"], ["table:out"], emitter=sent)
    def load():
        return "done"

    assert load() == "done"
    assert sent.states == ["START", "COMPLETE"]
    assert [data["name"] for data in sent.events[1]["outputs"]] == ["out"]


def test_nested_calls_are_runs_of_parent_and_child(sent):
    @track_lineage([RAW], [SILVER], emitter=sent)
    def inner():
        pass

    @track_lineage(emitter=sent)
    def middle():
        inner()

    @track_lineage(emitter=sent)
    def outer():
        middle()

    outer()
    parent = sent.of("inner")[0]["run"]["facets"]["parent"]
    assert parent["run"]["runId"] == sent.of("middle")[0]["run"]["runId"]
    assert parent["root"]["run"]["runId"] == sent.of("outer")[0]["run"]["runId"]
    assert "facets" not in sent.of("outer")[0]["run"]


def test_concurrent_calls_do_not_become_each_others_parents(sent):
    @track_lineage(emitter=sent)
    async def child():
        await asyncio.sleep(0.01)

    @track_lineage(emitter=sent)
    async def parent(number):
        await child()

    async def both():
        await asyncio.gather(parent(1), parent(2))

    asyncio.run(both())
    parents = {event["run"]["runId"] for event in sent.of("parent")}
    told = {event["run"]["facets"]["parent"]["run"]["runId"] for event in sent.of("child")}
    assert told == parents
    assert len(parents) == 2


def test_threads_do_not_become_each_others_parents(sent):
    barrier = threading.Barrier(2)

    @track_lineage(emitter=sent)
    def work():
        barrier.wait(10)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(sent.states) == ["COMPLETE", "COMPLETE", "START", "START"]
    assert all("facets" not in event["run"] for event in sent.events)


def test_an_emitter_that_fails_does_not_fail_the_function():
    class Broken:
        def emit(self, event):
            raise RuntimeError("collector is down")

    @track_lineage([RAW], [SILVER], emitter=Broken())
    def load():
        return 1

    assert load() == 1


def test_column_lineage_can_be_declared(sent):
    columns = [ColumnLineage("total", ["silver.orders.amount"], "SUM(amount)")]

    @track_lineage(["silver.orders"], ["gold.revenue"], emitter=sent, columns=columns)
    def build():
        pass

    build()
    (output,) = sent.events[1]["outputs"]
    (source,) = output["facets"]["columnLineage"]["fields"]["total"]["inputFields"]
    assert (source["name"], source["field"]) == ("silver.orders", "amount")
    assert source["transformations"][0]["description"] == "SUM(amount)"


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", "duckdb"])
def test_a_returned_frame_gives_the_schema_and_row_count(sent, library):
    frame = make_frame(library)

    @track_lineage([RAW], ["table:out"], emitter=sent)
    def build():
        return frame

    assert build() is frame
    (output,) = sent.events[1]["outputs"]
    assert [field["name"] for field in output["facets"]["schema"]["fields"]] == ["id", "name"]
    if library == "duckdb":  # a relation is not executed to count its rows
        assert "outputFacets" not in output
    else:
        assert output["outputFacets"]["outputStatistics"]["rowCount"] == 3


def test_the_rows_of_yielded_frames_add_up(sent):
    @track_lineage([RAW], ["table:out"], emitter=sent)
    def build():
        yield make_frame("pandas")
        yield make_frame("pandas")

    list(build())
    (output,) = sent.events[1]["outputs"]
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == 6


def make_frame(library):
    content = {"id": [1, 2, 3], "name": ["a", "b", "c"]}
    match library:
        case "pandas":
            import pandas as pd

            return pd.DataFrame(content)
        case "polars":
            import polars as pl

            return pl.DataFrame(content)
        case "pyarrow":
            import pyarrow as pa

            return pa.table(content)
        case "duckdb":
            import duckdb

            return duckdb.sql("SELECT 1 AS id, 'a' AS name")
    raise AssertionError(library)


def test_events_are_valid_json_with_openlineage_fields(sent):
    @track_lineage([RAW], [SILVER], emitter=sent)
    def load():
        pass

    load()
    for event in sent.events:
        assert json.loads(json.dumps(event)) == event
        assert event["schemaURL"].endswith("RunEvent")
        assert event["producer"]
