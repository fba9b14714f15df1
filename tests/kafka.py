"""The mock cluster of librdkafka: real brokers on local ports, in the process of the test.

It supports Kafka's protocol with consumer groups and committed offsets, so any client can connect.
"""

from __future__ import annotations

from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient


class MockKafka:
    """A broker, and a producer for its topics."""

    def __init__(self) -> None:
        self._producer = Producer(
            {"test.mock.num.brokers": 1, "bootstrap.servers": "", "log_level": 0}
        )
        brokers = self._producer.list_topics(timeout=10).brokers.values()
        self.address = ",".join(f"{broker.host}:{broker.port}" for broker in brokers)

    def send(self, topic: str, *values: bytes | str, headers: dict[str, str] | None = None) -> None:
        for value in values:
            self._producer.produce(
                topic,
                value.encode() if isinstance(value, str) else value,
                headers={name: text.encode() for name, text in (headers or {}).items()},
                partition=0,
            )
        assert self._producer.flush(20) == 0

    def committed(self, group: str, topic: str) -> int:
        """The committed offset of a group for partition 0; negative if there is none."""
        admin = AdminClient({"bootstrap.servers": self.address})
        asked = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0)])
        (answer,) = admin.list_consumer_group_offsets([asked]).values()
        return answer.result(20).topic_partitions[0].offset
