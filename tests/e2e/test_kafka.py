"""`downriver consume` with a real broker: groups, offsets, and a process that is killed."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.kafka_broker import running_kafka
from tests.unit.cli.command import downriver

from downriver.service import Lineage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow


def event(run: int) -> str:
    return json.dumps(
        {
            "eventType": "COMPLETE",
            "eventTime": "2026-01-01T00:00:00Z",
            "run": {"runId": str(run)},
            "job": {"namespace": "etl", "name": "load"},
            "inputs": [{"namespace": "pg", "name": "orders"}],
            "outputs": [{"namespace": "dw", "name": "revenue"}],
        }
    )


class Broker:
    """A broker with a producer and an administrator."""

    def __init__(self, address: str) -> None:
        self.address = address
        settings = {"bootstrap.servers": address, "log_level": 0}
        self._admin = AdminClient(settings)
        self._producer = Producer(settings)

    def topic(self, name: str, partitions: int = 1) -> None:
        (created,) = self._admin.create_topics([NewTopic(name, partitions, 1)]).values()
        created.result(60)

    def send(self, topic: str, *values: str, headers: dict[str, str] | None = None) -> None:
        for value in values:
            self._producer.produce(topic, value.encode(), headers=list((headers or {}).items()))
        assert self._producer.flush(60) == 0

    def committed(self, group: str, topic: str, partitions: int) -> int:
        """The number of records that a group has committed."""
        asked = [TopicPartition(topic, number) for number in range(partitions)]
        request = [ConsumerGroupTopicPartitions(group, asked)]
        (answer,) = self._admin.list_consumer_group_offsets(request).values()
        return sum(max(part.offset, 0) for part in answer.result(60).topic_partitions)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with running_kafka(tmp_path_factory.mktemp("kafka") / "broker") as address:
        yield Broker(address)


def test_records_of_several_topics_are_stored_and_their_offsets_committed(
    broker: Broker, tmp_path: Path
) -> None:
    for topic in ("lineage", "clicks"):
        broker.topic(topic, partitions=3)
    broker.send("lineage", *(event(run) for run in range(20)))
    headers = {"source_id": "web", "source": "raw_clicks", "target": "dw.clicks"}
    broker.send("clicks", *['{"id": 1}'] * 10, headers=headers)
    url = f"kafka://{broker.address}/lineage,clicks"
    for expected in (30, 0):  # the second member of the group continues after the first
        done = downriver("consume", url, "--group", "g", "--once", "--json", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["records"] == expected
        assert broker.committed("g", "lineage", 3) == 20
        assert broker.committed("g", "clicks", 3) == 10
    shown = downriver("trace", "raw_clicks", cwd=tmp_path)
    assert "dw.clicks" in shown.stdout, shown.stdout + shown.stderr


def test_a_consumer_that_is_killed_leaves_no_gap(broker: Broker, tmp_path: Path) -> None:
    broker.topic("many")
    broker.send("many", *(event(run) for run in range(3000)))
    url, store = f"kafka://{broker.address}/many", str(tmp_path / "store")
    command = [
        sys.executable,
        "-m",
        "downriver",
        "consume",
        url,
        "--group",
        "killed",
        "--store",
        store,
    ]
    (tmp_path / "client.properties").write_text("session.timeout.ms=6000\n")
    command += ["--config", "client.properties"]
    process = subprocess.Popen(command, cwd=tmp_path)
    try:
        for _ in range(600):
            if broker.committed("killed", "many", 1):
                break
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.1)
    finally:
        process.kill()
        process.wait(60)
    committed = broker.committed("killed", "many", 1)
    with Lineage.open(store) as lineage:
        assert 0 < committed <= lineage.admin.status().head  # a committed event is on disk
    rest = [*command, "--once"]  # the group waits until the killed member has timed out
    done = subprocess.run(rest, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with Lineage.open(store) as lineage:
        assert lineage.admin.status().head == 3000
