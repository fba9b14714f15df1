"""The lake's facts equal the server's catalog row for row, for any arrival of events."""

from __future__ import annotations

import tempfile
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.openlineage import parsed
from tests.unit.lake.dumps import dump
from tests.unit.openlineage.test_order_free import TIMES, catalog, events

from downriver.openlineage.files import list_event_files, read_event_file
from downriver.store import open_store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from downriver.openlineage import Event

GOLDEN = Path(__file__).parents[2] / "golden" / "openlineage"
CASES = sorted(GOLDEN.iterdir())

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::ResourceWarning")]


def server_catalog(told: list[Event]) -> dict:
    with tempfile.TemporaryDirectory() as folder, closing(open_store(folder)) as store:
        return catalog(store, [told])


def lake_catalog(spark: SparkSession, batches: list[list[Event]]) -> dict:
    """Merge batch after batch, each into the result of the batches before it."""
    from downriver.lake.silver.facts import fold_events, merge_facts

    facts: dict[str, DataFrame] = {}
    for batch in batches:
        rows = spark.createDataFrame([(bytearray(event.raw),) for event in batch], "body BINARY")
        facts = merge_facts(fold_events(rows).cache(), facts)
    return dump(facts)


def golden_events(case: Path) -> list[Event]:
    files = list_event_files([str(case / "event.json")])
    return [found.event for file in files for found, _ in read_event_file(file) if found.event]


def test_facts_of_golden_events_equal_the_catalog(spark):
    """The golden events use distinct names of datasets, so one lake can contain all of them."""
    told = [event for case in CASES for event in golden_events(case)]
    assert len(told) >= len(CASES)
    assert lake_catalog(spark, [told]) == server_catalog(told)


@st.composite
def long_retellings(draw: st.DrawFn) -> tuple[list[Event], list[list[Event]]]:
    """Draw a day of events, and the same as they may arrive: disordered, repeated, in batches."""
    new = draw(st.lists(events, min_size=8, max_size=16))
    later = draw(st.lists(st.tuples(st.sampled_from(new), TIMES), min_size=2, max_size=6))
    told = [parsed(event) for event in [*new, *(event | {"eventTime": at} for event, at in later)]]
    repeated = draw(st.lists(st.sampled_from(told), min_size=1, max_size=6))
    arriving = draw(st.permutations(told + repeated))
    cuts = sorted(draw(st.sets(st.integers(1, len(arriving) - 1), max_size=2)))
    return told, [arriving[a:b] for a, b in pairwise([0, *cuts, len(arriving)])]


@settings(
    deadline=None,
    max_examples=4,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(long_retellings())
def test_facts_equal_the_catalog_for_any_order_repetition_and_batching(spark, retelling):
    told, arriving = retelling
    assert lake_catalog(spark, arriving) == server_catalog(told)


def test_the_comparison_notices_a_single_difference(spark):
    """The comparison fails for two catalogs that differ in one row."""
    told = [event for case in CASES for event in golden_events(case)]
    lake, server = lake_catalog(spark, [told[1:]]), server_catalog(told)
    assert {name for name in server if lake[name] != server[name]} >= {"nodes", "bodies", "facets"}
    assert all(server[name] for name in server), "the golden events fill every table"
