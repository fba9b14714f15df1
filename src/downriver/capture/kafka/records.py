"""The lineage in a record of a topic.

A record is an OpenLineage event, a change event of Debezium, or data with lineage in an envelope or
in its headers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from downriver.capture.dataset_names import new_node
from downriver.capture.kafka.changes import ChangedTable, read_change
from downriver.errors import DownriverError, InvalidEventError
from downriver.model.ids import DatasetId
from downriver.openlineage.wire import Event, parse_event, split_events

_HEADERS = ("source_id", "source", "target")
_EVENT_KEYS = frozenset({"eventTime", "run", "job", "dataset", "producer", "schemaURL"})
_FEWEST_EVENT_KEYS = 2  # an object with some of these keys is read as an event


class KafkaRecord(msgspec.Struct, kw_only=True):
    """A record, and where it is. `at` is in µs since the epoch."""

    namespace: str
    topic: str
    partition: int
    offset: int
    value: bytes
    headers: dict[str, bytes] = {}
    at: int | None = None

    @property
    def where(self) -> str:
        """The place of the record, for messages."""
        return f"{self.topic}[{self.partition}]@{self.offset}"

    @property
    def dataset(self) -> DatasetId:
        """The topic."""
        return DatasetId(self.namespace, self.topic)


class RecordEdge(NamedTuple):
    """A topic with the source dataset and the target dataset of its records.

    `source_id` is the application that produces the records.
    """

    topic: DatasetId
    source: DatasetId | None = None
    target: DatasetId | None = None
    source_id: str = ""


class RecordLineage(NamedTuple):
    """The lineage of one record. `problem` is the reason why it could not be read."""

    events: tuple[Event, ...] = ()
    edge: RecordEdge | None = None
    change: ChangedTable | None = None
    problem: str | None = None


def read_record(record: KafkaRecord, namespace: str) -> RecordLineage:
    """Return the lineage that a record states.

    `namespace` is for names in envelopes and headers that have none.
    """
    value = record.value.lstrip()
    try:
        if value[:1] == b"[":
            return RecordLineage(tuple(parse_event(raw) for raw in split_events(value)))
        if value[:1] != b"{":
            return RecordLineage(edge=_header_edge(record, namespace))
        content = msgspec.json.decode(value)
        if len(_EVENT_KEYS & content.keys()) >= _FEWEST_EVENT_KEYS:
            return RecordLineage((parse_event(record.value),))
        payload = content.get("payload")
        body = payload if isinstance(payload, dict) and "schema" in content else content
        change = read_change(body, content.get("schema"), record.dataset)
        if change is not None:
            return RecordLineage(change=change)
        return RecordLineage(edge=_envelope_edge(record, content, body, namespace))
    except InvalidEventError as exc:
        return RecordLineage(problem=exc.message)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as exc:
        return _headers_only(record, namespace, f"not JSON: {exc}")
    except DownriverError as exc:
        return RecordLineage(problem=exc.message)


def _headers_only(record: KafkaRecord, namespace: str, problem: str) -> RecordLineage:
    """Return the lineage in the headers of a record whose value could not be read."""
    try:
        edge = _header_edge(record, namespace)
    except DownriverError as exc:
        return RecordLineage(problem=exc.message)
    return RecordLineage(edge=edge, problem=None if edge else problem)


def _envelope_edge(
    record: KafkaRecord, content: dict[str, Any], body: dict[str, Any], namespace: str
) -> RecordEdge | None:
    """Return the edge of a `lineage` object beside or inside the payload, else of the headers."""
    for place in (content, body):
        stated = place.get("lineage")
        if isinstance(stated, dict):
            texts = {name: stated[name] for name in _HEADERS if isinstance(stated.get(name), str)}
            return _edge(record, texts, namespace)
    return _header_edge(record, namespace)


def _header_edge(record: KafkaRecord, namespace: str) -> RecordEdge | None:
    name = "lineage"
    try:
        if name in record.headers:
            stated = msgspec.json.decode(record.headers[name], type=dict[str, Any])
            texts = {key: stated[key] for key in _HEADERS if isinstance(stated.get(key), str)}
        else:
            texts = {}
            for name in filter(record.headers.get, _HEADERS):
                texts[name] = record.headers[name].decode()
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as exc:
        raise InvalidEventError(f"header {name}", f"contains no lineage: {exc}") from exc
    return _edge(record, texts, namespace)


def _edge(record: KafkaRecord, texts: dict[str, str], namespace: str) -> RecordEdge | None:
    source, target = (
        _dataset(texts[name], namespace, f"lineage.{name}") if texts.get(name) else None
        for name in ("source", "target")
    )
    source_id = texts.get("source_id", "")
    if source is None and target is None and not source_id:
        return None
    return RecordEdge(record.dataset, source, target, source_id)


def _dataset(text: str, namespace: str, field: str) -> DatasetId:
    node = new_node(text, namespace, field)
    if not isinstance(node, DatasetId):
        raise InvalidEventError(field, f"{text!r} is a job, not a dataset")
    return node
