"""Kafka: events on topics, records that state their lineage, and connectors.

`consumer.py` reads records, `records.py` finds the lineage in one, `changes.py` reads change events
of Debezium, `edges.py` selects the new edges, and `connectors.py` reads Kafka Connect.
"""

from downriver.capture.kafka.consumer import KafkaAddress, KafkaConsumer, parse_address
from downriver.capture.kafka.edges import EdgeLog
from downriver.capture.kafka.records import KafkaRecord, RecordLineage, read_record

__all__ = [
    "EdgeLog",
    "KafkaAddress",
    "KafkaConsumer",
    "KafkaRecord",
    "RecordLineage",
    "parse_address",
    "read_record",
]
