"""`downriver consume`: events and lineage from Kafka topics."""

from __future__ import annotations

import signal
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from downriver import settings
from downriver.capture.emit import HttpSender
from downriver.capture.emit.http_sender import NotDeliveredError
from downriver.capture.kafka import KafkaConsumer, parse_address
from downriver.cli.output import JsonOption, StoreOption, counted, err, escape, out, print_json
from downriver.errors import InvalidRequestError, ServerUnreachableError, describe_failure
from downriver.model.ids import DEFAULT_NAMESPACE
from downriver.sdk.delivery import open_spool
from downriver.service import Lineage
from downriver.service.sql_facets import infer_datasets
from downriver.service.systems.kafka import Delivery, KafkaConsumption

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import FrameType

    from downriver.openlineage import Event
    from downriver.service.systems.kafka import ConsumedRecords

_SHOWN = 20


def consume(
    url: Annotated[
        str,
        typer.Argument(metavar="URL", help="Brokers and topics: kafka://host:9092/topic,topic."),
    ],
    group: Annotated[
        str, typer.Option("--group", metavar="NAME", help="The consumer group.")
    ] = "downriver",
    once: Annotated[
        bool, typer.Option("--once", help="Stop when all records are read, instead of waiting.")
    ] = False,
    sample: Annotated[
        int,
        typer.Option(
            "--sample",
            metavar="N",
            min=1,
            help="Search every Nth data record for lineage. OpenLineage events are all read.",
        ),
    ] = 1,
    namespace: Annotated[
        str,
        typer.Option(
            "--namespace",
            metavar="NAMESPACE",
            help="The namespace of names in records that have none.",
        ),
    ] = DEFAULT_NAMESPACE,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="Settings of the client, as lines of KEY=VALUE: security.protocol, sasl.username "
            "and so on.",
        ),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="URL", help="Send to this server instead of the store."),
    ] = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Read OpenLineage events, and the lineage in other records, from Kafka topics.

    A record is an OpenLineage event, a change event of Debezium, or data with a `lineage` object or
    the headers `source_id`, `source` and `target`.

    Offsets are committed when the events are on disk. Records that cannot be read are reported and
    passed over. Events that the server of --to rejects are kept in the spool. The exit code is then
    1.
    """
    address = parse_address(url)
    consumer = KafkaConsumer(address, group, _client_settings(config))
    try:
        with _delivery(to, store) as deliver, _stop_signals() as stopped:
            consumption = KafkaConsumption(consumer, deliver, namespace=namespace, sample=sample)
            show = _ProblemLines(consumption.total)
            while (consumption.step() or not once) and not stopped:
                show()
            show()
    finally:
        consumer.close()
    _show(consumption.total, ", ".join(address.topics), json=json)
    if consumption.total.problem_count or consumption.total.rejected:
        raise typer.Exit(1)


def _client_settings(path: Path | None) -> dict[str, str]:
    if path is None:
        return {}
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as exc:
        raise InvalidRequestError("--config", f"{path}: {describe_failure(exc)}") from exc
    client_settings = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        key, equals, value = line.partition("=")
        if not equals:
            raise InvalidRequestError("--config", f"{path}:{number}: not KEY=VALUE")
        client_settings[key.strip()] = value.strip()
    return client_settings


@contextmanager
def _delivery(to: str | None, store: str | None) -> Iterator[Callable[[Sequence[Event]], Delivery]]:
    """Yield a function that returns when events are on disk."""
    if to is not None:
        rejected: list[tuple[bytes, str]] = []
        key, spool = settings.read_text(settings.API_KEY), open_spool()
        keep = lambda event, reason: rejected.append((event, reason))  # noqa: E731
        with closing(HttpSender(to, key, reject=keep)) as send:

            def post(events: Sequence[Event]) -> Delivery:
                rejected.clear()
                try:
                    send(events)
                except NotDeliveredError as exc:
                    raise ServerUnreachableError(to, str(exc)) from exc
                for event, reason in rejected:
                    spool.reject(event, reason)
                return Delivery(len(events) - len(rejected), [reason for _, reason in rejected])

            yield post
        return
    with Lineage.open(store) as lineage:

        def write(events: Sequence[Event]) -> Delivery:
            receipts = lineage.ingest(events)
            infer_datasets(lineage.session, events)
            return Delivery(sum(not receipt.duplicate for receipt in receipts))

        yield write


@contextmanager
def _stop_signals() -> Iterator[list[int]]:
    """Yield a list that gets an entry at a signal to stop. The current batch ends first."""
    received: list[int] = []

    def stop(number: int, _: FrameType | None) -> None:
        received.append(number)

    previous = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


class _ProblemLines:
    """Prints the records that could not be read and the rejected events, each once."""

    def __init__(self, total: ConsumedRecords) -> None:
        self._total = total
        self._shown = [0, 0]

    def __call__(self) -> None:
        total = self._total
        rejections = [f"the server rejected an event: {text}" for text in total.rejections]
        for at, texts in enumerate((total.problems, rejections)):
            for text in texts[self._shown[at] : _SHOWN]:
                err.print(f"  [yellow]?[/] {escape(text)}")
            self._shown[at] = len(texts)


def _show(total: ConsumedRecords, topics: str, *, json: bool) -> None:
    if json:
        print_json(total)
        return
    parts = [f"[bold]{counted(total.records, 'record')}[/]", counted(total.stored, "event")]
    parts[1] += " stored"
    if total.without_lineage:
        parts.append(f"{counted(total.without_lineage, 'record')} without lineage")
    if total.sampled_out:
        parts.append(f"{total.sampled_out} sampled out")
    if total.problem_count:
        parts.append(f"[red]{total.problem_count} could not be read[/]")
    if total.rejected:
        parts.append(f"[red]{counted(total.rejected, 'event')} rejected[/], kept in the spool")
    out.print(f"{' · '.join(parts)} ({escape(topics)})")
