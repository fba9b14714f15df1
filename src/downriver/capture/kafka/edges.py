"""Selects the new edges in the lineage of records: a million records become a few events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.capture.entries import copied_inputs
from downriver.model.ids import DatasetId, JobId
from downriver.openlineage.events import dataset, dataset_event, job_event
from downriver.openlineage.facets.column_lineage import (
    LINEAGE,
    JobOutput,
    OutputLineage,
    render_job_lineage,
)
from downriver.openlineage.facets.dataset import (
    DATASET_TYPE,
    LIFECYCLE,
    SCHEMA,
    render_dataset_type,
    render_lifecycle,
    render_schema,
)
from downriver.openlineage.facets.job import JOB_TYPE, render_job_type

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.capture.kafka.changes import ChangedTable
    from downriver.capture.kafka.records import RecordEdge
    from downriver.openlineage import Event
    from downriver.openlineage.wire import WireDataset

_REPEAT_AFTER = 3600 * 1_000_000  # µs after which an edge in use is emitted again
_MOST_KEPT = 100_000
_LIFECYCLES = {"CREATE": "CREATE", "ALTER": "ALTER", "DROP": "DROP"}


class EdgeLog:
    """The emitted edges, with the times of their last events."""

    def __init__(self) -> None:
        self._stated: dict[object, int] = {}

    def new_events(self, edge: RecordEdge, at: int) -> Iterator[Event]:
        """Yield the events of an edge that was not emitted in the last hour."""
        if not self._is_news(edge, at):
            return
        topic, home = _topic(edge.topic), edge.topic.namespace
        if edge.source is not None or edge.source_id:
            producer = JobId(home, edge.source_id or f"{edge.topic.name}.producer")
            inputs = [] if edge.source is None else [dataset(edge.source)]
            yield _job(producer, at, "PRODUCER", inputs, [topic])
        if edge.target is not None:
            consumer = JobId(home, f"{edge.topic.name}.consumer")
            yield _job(consumer, at, "CONSUMER", [topic], [dataset(edge.target)])

    def change_events(self, change: ChangedTable, at: int) -> Iterator[Event]:
        """Yield the events of a change event that has a new table or schema."""
        names = [field.name for field in change.fields or ()]
        if not self._is_news((*change[:3], change.schema_change, *names), at):
            return
        schema = {} if change.fields is None else {SCHEMA: render_schema(change.fields)}
        if change.schema_change:
            kind = _LIFECYCLES.get(change.schema_change.upper(), "ALTER")
            facets = {**schema, LIFECYCLE: render_lifecycle(kind)}
            yield dataset_event(change.table, at, facets)
            return
        topic_facets = {DATASET_TYPE: render_dataset_type("TOPIC"), **schema}
        lineage = OutputLineage(copied_inputs(change.table, names))
        facets = {
            JOB_TYPE: render_job_type("KAFKA-CONNECT", "CONNECTOR", streaming=True),
            LINEAGE: render_job_lineage({change.topic: JobOutput([change.table], lineage)}),
        }
        inputs, outputs = [dataset(change.table, schema)], [dataset(change.topic, topic_facets)]
        yield job_event(change.job, at, inputs=inputs, outputs=outputs, facets=facets)

    def _is_news(self, key: object, at: int) -> bool:
        last = self._stated.get(key)
        if last is not None and at - last < _REPEAT_AFTER:
            return False
        if len(self._stated) >= _MOST_KEPT:
            self._stated.clear()
        self._stated[key] = at
        return True


def _topic(topic: DatasetId) -> WireDataset:
    return dataset(topic, {DATASET_TYPE: render_dataset_type("TOPIC")})


def _job(
    job: JobId, at: int, kind: str, inputs: list[WireDataset], outputs: list[WireDataset]
) -> Event:
    facets = {JOB_TYPE: render_job_type("KAFKA", kind, streaming=True)}
    return job_event(job, at, inputs=inputs, outputs=outputs, facets=facets)
