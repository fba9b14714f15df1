"""Events and stated lineage from Kafka topics, stored before their offsets are committed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from downriver.capture.kafka import EdgeLog, read_record
from downriver.model.ids import DEFAULT_NAMESPACE
from downriver.service.session import now

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from downriver.capture.kafka import KafkaConsumer, KafkaRecord
    from downriver.openlineage import Event

_POLL_SECONDS = 1.0
_MOST_PROBLEMS = 100


class ConsumedRecords(msgspec.Struct, kw_only=True):
    """The result of reading topics.

    `without_lineage` counts data records that state no lineage. `problems` are the first records
    that could not be read; `problem_count` counts all of them. `rejected` counts the events that
    the server rejected, and `rejections` are the reasons for the first ones.
    """

    records: int = 0
    stored: int = 0
    rejected: int = 0
    rejections: list[str] = []
    without_lineage: int = 0
    sampled_out: int = 0
    problem_count: int = 0
    problems: list[str] = []


class Delivery(NamedTuple):
    """How many events are new on disk, and why the server rejected others."""

    stored: int
    rejections: Sequence[str] = ()


class KafkaConsumption:
    """Reads topics and delivers events; commits offsets when the events are delivered.

    `deliver` returns when events are on disk. Every `sample`th
    record is searched for stated lineage; events of OpenLineage are never left out.
    """

    def __init__(
        self,
        consumer: KafkaConsumer,
        deliver: Callable[[Sequence[Event]], Delivery],
        *,
        namespace: str = DEFAULT_NAMESPACE,
        sample: int = 1,
    ) -> None:
        self._consumer = consumer
        self._deliver = deliver
        self._namespace = namespace
        self._sample = sample
        self._edges = EdgeLog()
        self.total = ConsumedRecords()

    def step(self) -> bool:
        """Read and store one batch. False if every record was read."""
        records = self._consumer.poll(_POLL_SECONDS)
        if not records:
            return not self._consumer.at_end
        events: list[Event] = []
        for record in records:
            events += self._events(record)
        if events:
            delivery = self._deliver(events)
            self.total.stored += delivery.stored
            self.total.rejected += len(delivery.rejections)
            room = _MOST_PROBLEMS - len(self.total.rejections)
            self.total.rejections += delivery.rejections[:room]
        self._consumer.commit(records)
        self.total.records += len(records)
        return not self._consumer.at_end

    def _events(self, record: KafkaRecord) -> list[Event]:
        if record.offset % self._sample and b'"eventTime"' not in record.value:
            self.total.sampled_out += 1
            return []
        record_lineage = read_record(record, self._namespace)
        at = record.at if record.at is not None else now()
        if record_lineage.problem is not None:
            self.total.problem_count += 1
            if len(self.total.problems) < _MOST_PROBLEMS:
                self.total.problems.append(f"{record.where}: {record_lineage.problem}")
            return []
        if record_lineage.events:
            return list(record_lineage.events)
        if record_lineage.change is not None:
            return list(self._edges.change_events(record_lineage.change, at))
        if record_lineage.edge is not None:
            return list(self._edges.new_events(record_lineage.edge, at))
        self.total.without_lineage += 1
        return []
