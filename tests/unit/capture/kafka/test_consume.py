"""`downriver consume` with a broker: what is stored, and when offsets are committed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.kafka import MockKafka
from tests.server import serving
from tests.unit.capture.test_emit import collector as collector
from tests.unit.cli.command import downriver

from downriver.capture.emit import Spool
from downriver.capture.kafka import KafkaConsumer, parse_address
from downriver.errors import StoreError
from downriver.service import Lineage
from downriver.service.systems.kafka import Delivery, KafkaConsumption

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.capture.test_emit import Collector

EVENT = json.dumps(
    {
        "eventType": "COMPLETE",
        "eventTime": "2026-01-01T00:00:00Z",
        "run": {"runId": "1"},
        "job": {"namespace": "etl", "name": "load"},
        "inputs": [{"namespace": "pg", "name": "orders"}],
        "outputs": [{"namespace": "dw", "name": "revenue"}],
    }
)


@pytest.fixture(scope="module")
def kafka() -> MockKafka:
    return MockKafka()


def test_events_and_stated_lineage_are_stored_and_offsets_committed(kafka, tmp_path: Path):
    envelope = {"payload": {"id": 1}, "lineage": {"source": "raw", "target": "dw.clicks"}}
    kafka.send("lineage", EVENT, '{"eventTime": 5, "job": {}}')
    kafka.send("clicks", json.dumps(envelope), '{"id": 2}')
    url = f"kafka://{kafka.address}/lineage,clicks"
    done = downriver("consume", url, "--group", "g", "--once", "--json", cwd=tmp_path)
    total = json.loads(done.stdout)
    assert done.returncode == 1, done.stderr
    assert total["problems"] == ["lineage[0]@1: eventTime: expected str, got int"]
    assert (total["records"], total["stored"], total["without_lineage"]) == (4, 3, 1)
    assert (kafka.committed("g", "lineage"), kafka.committed("g", "clicks")) == (2, 2)
    found = downriver("trace", "raw", cwd=tmp_path)
    assert "dw.clicks" in found.stdout


def test_offsets_of_events_that_were_not_stored_are_not_committed(kafka):
    kafka.send("unstored", EVENT)

    def refuse(events: object) -> Delivery:
        raise StoreError("disk full")

    consumer = KafkaConsumer(parse_address(f"kafka://{kafka.address}/unstored"), "g2", {})
    consumption = KafkaConsumption(consumer, refuse)
    with pytest.raises(StoreError):
        all(consumption.step() for _ in range(60))
    consumer.close()
    assert kafka.committed("g2", "unstored") < 0


def test_events_are_sent_to_a_server(kafka, tmp_path: Path):
    kafka.send("sent", EVENT)
    with Lineage.open(str(tmp_path / "db")) as lineage, serving(lineage) as server:
        url = f"kafka://{kafka.address}/sent"
        done = downriver("consume", url, "--group", "g3", "--once", "--to", server, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert [node.name for node in lineage.trace("dw:revenue", "upstream").nodes]


def test_an_event_that_the_server_rejects_is_kept_and_not_counted_as_stored(
    kafka, collector: Collector, tmp_path: Path
):
    kafka.send("rejected", *(EVENT.replace('"1"', f'"{run}"') for run in (1, 2, 3)))
    collector.statuses = [201, 400, 201]
    environment = {"DOWNRIVER_SPOOL": str(tmp_path / "spool")}
    url = f"kafka://{kafka.address}/rejected"
    options = ("--group", "g4", "--once", "--to", collector.url, "--json")
    done = downriver("consume", url, *options, cwd=tmp_path, **environment)
    total = json.loads(done.stdout)
    assert done.returncode == 1, done.stderr
    assert (total["records"], total["stored"], total["rejected"]) == (3, 2, 1)
    assert total["rejections"] == ["400: "]
    assert "the server rejected an event: 400" in done.stderr
    (kept,) = Spool(tmp_path / "spool").rejected()
    assert json.loads(kept.event)["run"] == {"runId": "2"}
    assert kafka.committed("g4", "rejected") == 3

    status = downriver("spool", "status", cwd=tmp_path, **environment)
    assert "1 event rejected by the server and kept" in status.stdout
    again = ("spool", "flush", "--rejected", "--to", collector.url)
    collector.statuses = [400]
    refused = downriver(*again, cwd=tmp_path, **environment)
    assert (refused.returncode, refused.stdout) == (
        1,
        "0 events sent, 0 still spooled, 1 rejected\n",
    )
    accepted = downriver(*again, cwd=tmp_path, **environment)
    assert (accepted.returncode, accepted.stdout) == (0, "1 event sent, 0 still spooled\n")


def test_an_unknown_topic_is_an_error_that_lists_the_topics(kafka, tmp_path: Path):
    kafka.send("known", EVENT)
    done = downriver("consume", f"kafka://{kafka.address}/unknown", cwd=tmp_path)
    assert done.returncode == 2
    assert "no topic named unknown" in done.stderr
    assert "known" in done.stderr


def test_settings_that_protect_the_offsets_cannot_be_changed(kafka, tmp_path: Path):
    (tmp_path / "client.properties").write_text("# auth\nenable.auto.commit=true\n")
    url = f"kafka://{kafka.address}/lineage"
    done = downriver("consume", url, "--config", "client.properties", cwd=tmp_path)
    assert done.returncode == 2
    assert "enable.auto.commit cannot be set here" in done.stderr
