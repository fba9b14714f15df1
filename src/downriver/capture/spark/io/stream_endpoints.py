"""The sources and the sink of a streaming query, from its plans in the JVM."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from downriver.capture.spark.actions import DatasetLocation, PlanLeaf, Sink
from downriver.capture.spark.io.kafka_topics import (
    KAFKA,
    read_topics,
    scala_options,
    written_topic,
)
from downriver.capture.spark.java import Java, column_ids, elements, option_value, simple_name
from downriver.openlineage.naming import dataset_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.capture.spark.io.sources import DatasetLocator

_IN_BRACKETS = re.compile(r"\w+\[(.*)\]", re.DOTALL)
_FILES = ("FileStreamSource[", "DeltaSource[")
_FILE_SINKS = frozenset({"FileStreamSink", "DeltaSink"})
_GENERATED = frozenset({"rate", "rate-micro-batch"})  # rows without a dataset
# Rows that are dropped, printed or kept in memory. Writes of foreachBatch are separate actions.
_NO_DATASET = frozenset({"ForeachBatchSink", "NoopTable$", "ConsoleTable$", "MemorySink"})
_USER_CODE = "ForeachWriterTable"
_V2_SOURCE = "StreamingRelationV2"
_LONGEST = 200


class StreamSink(NamedTuple):
    """Where a stream writes; `unknown` describes a sink whose dataset is not known."""

    sink: Sink | None = None
    unknown: str = ""


def stream_leaves(query: Java, locator: DatasetLocator) -> Iterator[PlanLeaf]:
    """Yield the sources of a running query."""
    v2 = set()
    for leaf in elements(query.analyzedPlan().collectLeaves()):
        if simple_name(leaf) == _V2_SOURCE:
            plan_leaf = _with_columns(_v2_source(leaf, locator), leaf)
            v2.add(plan_leaf.first_id)
            yield plan_leaf
    for leaf in elements(query.logicalPlan().collectLeaves()):
        if simple_name(leaf).startswith("Streaming"):
            plan_leaf = _with_columns(_v1_source(leaf), leaf)
            if plan_leaf.first_id not in v2:
                yield plan_leaf


def _with_columns(plan_leaf: PlanLeaf, leaf: Java) -> PlanLeaf:
    plan_leaf.columns = column_ids(leaf.output())
    plan_leaf.first_id = next(iter(plan_leaf.columns), -1)
    return plan_leaf


def _v2_source(leaf: Java, locator: DatasetLocator) -> PlanLeaf:
    kind = str(leaf.sourceName()).lower()
    if kind in _GENERATED:
        return PlanLeaf(-1, [])
    if kind == KAFKA:
        options = leaf.extraOptions()  # ignores letter case
        return read_topics(lambda name: str(options.get(name) or ""))
    catalog, identifier = option_value(leaf.catalog()), option_value(leaf.identifier())
    place = locator.located(leaf.table(), catalog, identifier)
    if place is None:
        return PlanLeaf(-1, [], unknown=f"the stream {kind} {leaf.table().name()}"[:_LONGEST])
    return PlanLeaf(-1, [place])


def _v1_source(leaf: Java) -> PlanLeaf:
    text = str(leaf.toString())
    inside = _IN_BRACKETS.match(text)
    if text.startswith(_FILES) and inside:
        return PlanLeaf(-1, [DatasetLocation(dataset_at(inside[1]))])
    return PlanLeaf(-1, [], unknown=f"the stream {text.strip()[:_LONGEST]}")


def stream_sink(query: Java, locator: DatasetLocator) -> StreamSink:
    """Return where a running query writes."""
    sink, root = query.sink(), query.logicalPlan()
    kind = simple_name(sink)
    if kind in _NO_DATASET:
        return StreamSink()
    if kind == _USER_CODE:
        return StreamSink(unknown="the user code of foreach")
    if kind in _FILE_SINKS:
        inside = _IN_BRACKETS.match(str(sink.toString()))
        if inside:
            return StreamSink(Sink(DatasetLocation(dataset_at(inside[1]))))
    place = None
    if kind.endswith("$KafkaTable"):
        place = written_topic(scala_options(root.writeOptions()))
    elif simple_name(root).startswith("WriteTo"):
        relation = option_value(root.relation())
        place = None if relation is None else locator.v2_table(relation)
    if place is None:
        return StreamSink(unknown=f"the sink {kind}")
    return StreamSink(Sink(place))
