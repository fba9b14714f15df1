"""The topics of Kafka that Spark reads and writes, from the options of a source or sink."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from downriver.capture.spark.actions import DatasetLocation, PlanLeaf
from downriver.capture.spark.java import Java, element_texts, option_value
from downriver.model.ids import DatasetId

if TYPE_CHECKING:
    from collections.abc import Callable

    FindOption = Callable[[str], str]

KAFKA = "kafka"
_SERVERS = "kafka.bootstrap.servers"
_PORT = 9092


def batch_options(relation: Java) -> FindOption:
    """Return the options of a batch source, which its class keeps private."""
    field = relation.getClass().getDeclaredField("sourceOptions")
    field.setAccessible(True)
    return scala_options(field.get(relation))


def scala_options(options: Java) -> FindOption:
    """Return a function for the options of a Scala map, in any letter case; "" if not given."""
    keys = {key.lower(): key for key in element_texts(options.keys().toSeq())}

    def find(name: str) -> str:
        return str(option_value(options.get(keys.get(name, name))) or "")

    return find


def read_topics(find: FindOption) -> PlanLeaf:
    """Return the topics that a source reads: a list, or partitions of topics in JSON."""
    names = [name.strip() for name in find("subscribe").split(",") if name.strip()]
    if assigned := find("assign"):
        names += msgspec.json.decode(assigned, type=dict[str, list[int]])
    if names:
        return PlanLeaf(-1, [_topic(find, name) for name in names])
    return PlanLeaf(-1, [], unknown=f"the Kafka topics that match {find('subscribepattern')}")


def written_topic(find: FindOption) -> DatasetLocation | None:
    """Return the topic that a sink writes; None if a column of the rows names it."""
    name = find("topic")
    return _topic(find, name) if name else None


def _topic(find: FindOption, name: str) -> DatasetLocation:
    """Return a topic; its namespace is the first broker, as OpenLineage names it."""
    broker = find(_SERVERS).partition(",")[0].strip().rpartition("://")[2]
    if broker and ":" not in broker:
        broker = f"{broker}:{_PORT}"
    return DatasetLocation(DatasetId(f"kafka://{broker}", name), None, KAFKA)
