"""A consumer of a group that commits only records that its caller has stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from downriver.capture.kafka.records import KafkaRecord
from downriver.errors import InvalidRequestError, MissingDependencyError, ServerUnreachableError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_PORT = 9092
_CONNECT_SECONDS = 15.0
_BATCH_RECORDS = 500
_END_OF_TIME = 253_402_300_800_000  # year 10000, in ms; producers may set any number
_OWN_SETTINGS = frozenset(
    {"bootstrap.servers", "group.id", "enable.auto.commit", "enable.partition.eof"}
)


class KafkaAddress(NamedTuple):
    """The brokers and topics of a `kafka://host:port,host:port/topic,topic` URL."""

    servers: str
    topics: tuple[str, ...]

    @property
    def namespace(self) -> str:
        """The namespace of the topics: OpenLineage names them after the first broker."""
        return f"kafka://{self.servers.partition(',')[0]}"


def parse_address(url: str) -> KafkaAddress:
    """Return the brokers and topics of a URL, or raise an error that shows the form."""
    hint = "write kafka://host:9092/topic or kafka://host:9092,host:9092/topic,topic"
    try:
        parts = urlsplit(url)
    except ValueError as exc:  # brackets or characters that no host contains
        raise InvalidRequestError("URL", f"{url!r} is not a URL; {hint}") from exc
    topics = tuple(dict.fromkeys(filter(None, parts.path.strip("/").split(","))))
    hosts = [host for host in parts.netloc.split(",") if host]
    if parts.scheme != "kafka" or not hosts or not topics or "@" in parts.netloc:
        raise InvalidRequestError("URL", f"{url!r} has no brokers and topics; {hint}")
    servers = ",".join(host if ":" in host else f"{host}:{_PORT}" for host in hosts)
    return KafkaAddress(servers, topics)


class KafkaConsumer:
    """Reads records of topics as a member of a consumer group.

    Offsets are committed by `commit`, never in the background. A record whose batch was not
    committed is therefore read again.
    """

    def __init__(self, address: KafkaAddress, group: str, settings: Mapping[str, str]) -> None:
        try:
            import confluent_kafka
        except ImportError as exc:
            raise MissingDependencyError("confluent-kafka", "kafka") from exc
        self._library: Any = confluent_kafka
        self._address = address
        self._assigned: set[tuple[str, int]] | None = None
        self._ended: set[tuple[str, int]] = set()
        if taken := sorted(_OWN_SETTINGS & settings.keys()):
            raise InvalidRequestError("--config", f"{', '.join(taken)} cannot be set here")
        try:
            self._consumer = confluent_kafka.Consumer(
                {
                    "auto.offset.reset": "earliest",
                    **settings,
                    "bootstrap.servers": address.servers,
                    "group.id": group,
                    "enable.auto.commit": False,
                    "enable.partition.eof": True,
                },
                logger=_SILENT,
            )
            self._check_topics()
            self._consumer.subscribe(
                list(address.topics), on_assign=self._assign, on_revoke=self._revoke
            )
        except confluent_kafka.KafkaException as exc:
            raise self._error(exc) from exc

    def poll(self, seconds: float) -> list[KafkaRecord]:
        """Return the next records; none if there are no new ones within `seconds`."""
        try:
            messages = self._consumer.consume(num_messages=_BATCH_RECORDS, timeout=seconds)
        except self._library.KafkaException as exc:
            raise self._error(exc) from exc
        records = []
        for message in messages:
            error = message.error()
            if error is None:
                record = _record(message, self._address.namespace)
                records.append(record)
                self._ended.discard((record.topic, record.partition))
            elif error.code() == self._library.KafkaError._PARTITION_EOF:
                self._ended.add((str(message.topic()), int(message.partition() or 0)))
            elif error.fatal() or not error.retriable():
                raise self._error(self._library.KafkaException(error))
        return records

    @property
    def at_end(self) -> bool:
        """Whether every record of the assigned partitions was read."""
        return self._assigned is not None and self._assigned <= self._ended

    def commit(self, records: Sequence[KafkaRecord]) -> bool:
        """Commit the offsets behind records. False if the group gave the partitions to others.

        The other member then reads the same records again.
        """
        last: dict[tuple[str, int], int] = {}
        for record in records:
            last[record.topic, record.partition] = record.offset + 1
        offsets = [
            self._library.TopicPartition(topic, partition, offset)
            for (topic, partition), offset in last.items()
        ]
        try:
            self._consumer.commit(offsets=offsets, asynchronous=False)
        except self._library.KafkaException as exc:
            if exc.args[0].code() in self._moved:
                return False
            raise self._error(exc) from exc
        return True

    def close(self) -> None:
        """Leave the group."""
        self._consumer.close()

    @property
    def _moved(self) -> tuple[int, ...]:
        codes = self._library.KafkaError
        return (
            codes.ILLEGAL_GENERATION, codes.UNKNOWN_MEMBER_ID, codes.REBALANCE_IN_PROGRESS,
            codes._ASSIGNMENT_LOST,
        )  # fmt: skip

    def _check_topics(self) -> None:
        existing_topics = self._consumer.list_topics(timeout=_CONNECT_SECONDS).topics
        missing = [topic for topic in self._address.topics if topic not in existing_topics]
        if missing:
            names = sorted(name for name in existing_topics if not name.startswith("__"))
            shown = ", ".join(names[:10]) or "none"
            reason = f"no topic named {', '.join(missing)}; topics of the broker: {shown}"
            raise InvalidRequestError("URL", reason)

    def _assign(self, _: Any, partitions: list[Any]) -> None:
        self._assigned = {(one.topic, one.partition) for one in partitions}
        self._ended &= self._assigned

    def _revoke(self, _: Any, partitions: list[Any]) -> None:
        self._assigned = (self._assigned or set()) - {(p.topic, p.partition) for p in partitions}

    def _error(self, exc: Any) -> ServerUnreachableError:
        reason = exc.args[0].str() if exc.args else str(exc)
        return ServerUnreachableError(f"kafka://{self._address.servers}", reason)


class _NullLogger:
    """A logger that prints nothing. Our errors contain the library's messages."""

    def log(self, *_: object, **__: object) -> None:
        """Ignore a line."""


_SILENT = _NullLogger()


def _record(message: Any, namespace: str) -> KafkaRecord:
    kind, milliseconds = message.timestamp()
    return KafkaRecord(
        namespace=namespace,
        topic=message.topic(),
        partition=message.partition(),
        offset=message.offset(),
        at=milliseconds * 1000 if kind and 0 < milliseconds < _END_OF_TIME else None,
        headers={name: value or b"" for name, value in message.headers() or ()},
        value=message.value() or b"",
    )
