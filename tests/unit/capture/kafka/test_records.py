"""What single records state: events, envelopes, headers and change events."""

from __future__ import annotations

import json
from unittest.mock import Mock

import pytest

from downriver import Lineage
from downriver.capture.kafka import EdgeLog, KafkaRecord, parse_address, read_record
from downriver.capture.kafka.consumer import _record
from downriver.errors import InvalidRequestError
from downriver.model.ids import DatasetId, JobId

HOUR = 3600 * 1_000_000
EVENT = {
    "eventType": "COMPLETE",
    "eventTime": "2026-01-01T00:00:00Z",
    "run": {"runId": "1"},
    "job": {"namespace": "etl", "name": "load"},
}
SOURCE = {
    "version": "3.0.0", "connector": "postgresql", "name": "shop", "ts_ms": 1, "snapshot": "false",
    "db": "shopdb", "schema": "public", "table": "orders",
}  # fmt: skip
CHANGE = {"before": None, "after": {"id": 1}, "source": SOURCE, "op": "c", "ts_ms": 1}


def record(value: object, offset: int = 0, **headers: bytes) -> KafkaRecord:
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    return KafkaRecord(
        namespace="kafka://broker:9092", topic="orders", partition=0, offset=offset, value=body,
        headers=headers,
    )  # fmt: skip


def test_an_event_and_an_array_of_events_are_read():
    assert [e.wire.job.name for e in read_record(record(EVENT), "default").events] == ["load"]
    assert len(read_record(record([EVENT, EVENT]), "default").events) == 2


@pytest.mark.parametrize("value", [{"job": {}, "eventTime": 5}, b'{"eventTime": ', b"[1]"])
def test_an_unreadable_event_is_a_problem_and_not_data(value):
    assert read_record(record(value), "default").problem


@pytest.mark.parametrize("inside", [True, False])
def test_the_lineage_object_of_an_envelope_is_an_edge(inside):
    stated = {"source": "raw_orders", "target": "postgres://dw/analytics/orders", "timestamp": 1}
    content = {"payload": {"lineage": stated}, "schema": None} if inside else {
        "payload": {"id": 1}, "lineage": stated,
    }  # fmt: skip
    edge = read_record(record(content), "shop").edge
    assert edge.source == DatasetId("shop", "raw_orders")
    assert edge.target == DatasetId("postgres://dw", "analytics.orders")


def test_headers_are_an_edge_also_of_a_binary_record():
    found = read_record(record(b"\x00avro", source=b"raw_orders", source_id=b"web"), "shop")
    assert found.edge.source == DatasetId("shop", "raw_orders")
    assert found.edge.source_id == "web"
    assert found.problem is None


@pytest.mark.parametrize("value", [b"\x00avro", b"", {"id": 1}, b"12"])
def test_data_that_states_no_lineage_is_neither_an_edge_nor_a_problem(value):
    found = read_record(record(value), "default")
    assert (found.events, found.edge, found.change, found.problem) == ((), None, None, None)


def test_a_thousand_records_of_one_source_are_two_events_an_hour():
    log = EdgeLog()
    stated = {"lineage": {"source": "raw_orders", "target": "dw.orders"}}
    edge = read_record(record(stated), "default").edge
    first = [event for at in range(1000) for event in log.new_events(edge, at)]
    assert [event.wire.job.name for event in first] == ["orders.producer", "orders.consumer"]
    assert len(list(log.new_events(edge, HOUR))) == 2


@pytest.mark.parametrize("wrapped", [True, False])
def test_a_change_event_connects_the_table_with_the_topic(wrapped):
    found = read_record(record({"schema": None, "payload": CHANGE} if wrapped else CHANGE), "d")
    assert found.change.table == DatasetId("postgres://shop", "shopdb.public.orders")
    assert found.change.job == JobId("kafka-connect", "shop")
    (event,) = EdgeLog().change_events(found.change, 1)
    assert [one.name for one in event.wire.inputs] == ["shopdb.public.orders"]
    assert [one.name for one in event.wire.outputs] == ["orders"]


def test_a_change_event_of_mysql_has_no_schema_in_its_name():
    source = {"connector": "mysql", "name": "crm", "db": "sales", "table": "accounts"}
    found = read_record(record({**CHANGE, "source": source}), "default")
    assert found.change.table == DatasetId("mysql://crm", "sales.accounts")


def test_the_schema_of_a_change_event_gives_columns_and_their_sources():
    row = {"field": "after", "fields": [{"field": "id", "type": "int32"}]}
    schema = {"type": "struct", "fields": [{"field": "op", "type": "string"}, row]}
    change = read_record(record({"schema": schema, "payload": CHANGE}), "default").change
    with Lineage.open(":memory:") as lineage:
        lineage.ingest(list(EdgeLog().change_events(change, 1)))
        found = lineage.trace("shopdb.public.orders.id", "downstream")
    assert [(edge.target, edge.subtype) for edge in found.edges] == [
        ("column:kafka://broker:9092:orders:id", "IDENTITY")
    ]


def test_two_tables_of_one_connector_keep_their_own_topics():
    with Lineage.open(":memory:") as lineage:
        for table in ("orders", "customers"):
            one = record({**CHANGE, "source": {**SOURCE, "table": table}})
            one.topic = f"shop.public.{table}"
            change = read_record(one, "default").change
            lineage.ingest(list(EdgeLog().change_events(change, 1)))
        found = lineage.trace("topic:shop.public.orders", "upstream")
    assert [n.name for n in found.nodes if n.name.startswith("shopdb")] == ["shopdb.public.orders"]


def test_a_new_column_in_a_schema_change_is_news():
    def changed(*columns: str) -> KafkaRecord:
        table = {"columns": [{"name": name, "typeName": "INT"} for name in columns]}
        changes = [{"type": "ALTER", "id": '"shopdb"."public"."orders"', "table": table}]
        return record({"source": SOURCE, "ddl": "ALTER TABLE", "tableChanges": changes})

    log = EdgeLog()
    sizes = [
        len(list(log.change_events(read_record(one, "default").change, 1)))
        for one in (changed("id"), changed("id"), changed("id", "email"))
    ]
    assert sizes == [1, 0, 1]


@pytest.mark.parametrize(
    "url", ["kafka://host", "kafka:///topic", "http://host/t", "kafka://u@h/t", "kafka://[h/t"]
)
def test_a_url_without_brokers_or_topics_is_refused(url):
    with pytest.raises(InvalidRequestError, match="kafka://host:9092/topic"):
        parse_address(url)


def test_the_namespace_of_topics_is_the_first_broker_with_its_port():
    address = parse_address("kafka://one,two:9093/orders,clicks")
    assert address.servers == "one:9092,two:9093"
    assert address.namespace == "kafka://one:9092"
    assert address.topics == ("orders", "clicks")


@pytest.mark.parametrize("value", [b"\x00avro", {"id": 1}, b"{"])
@pytest.mark.parametrize(
    "headers",
    [{"lineage": b"no"}, {"lineage": b"[1]"}, {"source": b"\xff"}, {"source_id": b"\xff"}],
)
def test_unreadable_headers_are_a_problem_and_stop_nothing(value, headers):
    found = read_record(record(value, **headers), "shop")
    assert found.edge is None
    assert f"header {next(iter(headers))}: " in found.problem


def test_a_change_with_a_malformed_schema_is_read():
    schema = {"fields": [{"field": "after", "fields": 5}]}
    assert read_record(record({"schema": schema, "payload": CHANGE}), "shop").change.fields == ()


@pytest.mark.parametrize("milliseconds", [-1, 2**62, 253_402_300_800_000])
def test_a_time_that_no_calendar_has_is_left_out(milliseconds):
    stated = {"topic": "t", "partition": 0, "offset": 1, "headers": None, "value": b"x"}
    message = Mock(**{f"{name}.return_value": value for name, value in stated.items()})
    message.timestamp.return_value = (1, milliseconds)
    assert _record(message, "kafka://b:9092").at is None
    message.timestamp.return_value = (1, 1000)
    assert _record(message, "kafka://b:9092").at == 1_000_000
