"""Messages and URLs of Kafka topics."""

from __future__ import annotations

import pyarrow as pa
import pytest
from tests.openlineage import encode, run_event

from downriver.errors import InvalidRequestError
from downriver.lake.bronze.stream_sources import parse_topic, read_messages

ONE, TWO = (encode(run_event(run=run)) for run in ("1", "2"))


def test_a_message_is_one_event_several_or_an_unreadable_record():
    rows = [(0, 7, ONE), (1, 3, b"[" + ONE + b"," + TWO + b"]"), (0, 8, b"nonsense"), (0, 9, None)]
    batch = pa.RecordBatch.from_pylist(
        [{"partition": p, "offset": o, "value": v} for p, o, v in rows]
    )
    found = [row for of in read_messages(batch, "kafka://h/t") for row in of.to_pylist()]
    assert [(row["source"], row["offset"], row["position"], row["body"]) for row in found] == [
        ("kafka://h/t/0", 7, 0, ONE),
        ("kafka://h/t/0", 8, 0, b"nonsense"),
        ("kafka://h/t/0", 9, 0, b""),
        ("kafka://h/t/1", 3, 0, ONE),
        ("kafka://h/t/1", 3, 1, TWO),
    ]
    reasons = [row["reason"] for row in found]
    assert reasons[0] is reasons[3] is reasons[4] is None
    assert "not valid JSON" in reasons[1]
    assert reasons[2] == "empty message"


def test_the_url_of_a_topic_is_parsed():
    topic = parse_topic("kafka://a:9092,b:9092/events?kafka.sasl.jaas.config=secret")
    assert (topic.servers, topic.name) == ("a:9092,b:9092", "events")
    assert topic.options == {"kafka.sasl.jaas.config": "secret"}
    assert "secret" not in topic.source


@pytest.mark.parametrize(
    "url", ["kafka://a:9092", "kafka:///events", "kafka://a/b/c", "kafka://[a/b"]
)
def test_an_invalid_url_of_a_topic_is_refused(url):
    with pytest.raises(InvalidRequestError, match="kafka://host:9092/topic"):
        parse_topic(url)
