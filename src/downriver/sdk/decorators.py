"""Python functions as jobs: decorators, and documentation of column lineage."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

import msgspec

from downriver.capture.dataset_names import new_node
from downriver.capture.emit import Emitter, guarded
from downriver.capture.functions import (
    Dataset,
    DatasetUse,
    FrameShape,
    TrackingOptions,
    track_function,
)
from downriver.capture.functions.events import render_documented
from downriver.capture.functions.runs import as_dataset, fill_template
from downriver.errors import InvalidRequestError
from downriver.model.ids import DEFAULT_NAMESPACE, DatasetId, JobId, NodeId
from downriver.sdk.delivery import open_emitter, shared_emitter

if TYPE_CHECKING:
    from downriver.capture.functions import ColumnLineage
    from downriver.openlineage.wire import Event

F = TypeVar("F", bound=Callable[..., Any])
# A name, URI or path, a `Dataset`, or a dictionary or object with `namespace` and `name`.
DatasetName: TypeAlias = Any
DatasetNames: TypeAlias = DatasetName | Sequence[DatasetName] | None
NameResolver: TypeAlias = Callable[[str], NodeId]


class EventEmitter(Protocol):
    """An object that accepts OpenLineage events as dictionaries."""

    def emit(self, event: dict[str, Any]) -> None:
        """Accept an event."""


class LineageEmitter:
    """Sends events to a collector. It never raises and never waits: unsent events are spooled."""

    def __init__(self, marquez_url: str | None = None) -> None:
        self._emitter = open_emitter(marquez_url)

    def emit(self, event: Mapping[str, Any]) -> None:
        """Send an OpenLineage event."""
        with guarded("reading an event to be sent"):
            self._emitter.close_at_exit()  # in this process, which may be a fork
            self._emitter.emit(msgspec.json.encode(event))

    def flush(self, timeout: float = 10.0) -> bool:
        """Wait until all events are sent or spooled. False if that takes longer than `timeout`."""
        return self._emitter.flush(timeout)


def track_lineage(
    inputs: Sequence[DatasetName] = (),
    outputs: Sequence[DatasetName] = (),
    job_namespace: str = DEFAULT_NAMESPACE,
    emitter: EventEmitter | LineageEmitter | Emitter | None = None,
    *,
    auto: bool = False,
    job_name: str | None = None,
    description: str = "",
    columns: Sequence[ColumnLineage] = (),
) -> Callable[[F], F]:
    """Record every call of a function as a run: START, then COMPLETE, FAIL or ABORT.

    Text in braces is replaced by the call's arguments. With `auto`, datasets that pandas, polars,
    pyarrow and duckdb read or write during the call are added. Events go to `emitter`, else to
    DOWNRIVER_URL, else to the store. If the collector is down, the function is neither slowed
    down nor interrupted.
    """
    return track_calls(
        inputs,
        outputs,
        emit=_sending_to(emitter),
        names=resolve_offline,
        namespace=job_namespace,
        auto=auto,
        job_name=job_name,
        description=description,
        columns=columns,
    )


def track_calls(
    sources: DatasetNames,
    targets: DatasetNames,
    *,
    emit: Callable[[Event], None],
    names: NameResolver,
    namespace: str = DEFAULT_NAMESPACE,
    auto: bool = False,
    job_name: str | None = None,
    description: str = "",
    columns: Sequence[ColumnLineage] = (),
) -> Callable[[F], F]:
    """Return a decorator that records the calls of a function."""

    def table(name: str) -> DatasetId:
        return _dataset(name, names)

    read, written = list_datasets(sources), list_datasets(targets)
    tracking = TrackingOptions(
        sources=lambda values: [_end(end, values, names) for end in read],
        targets=lambda values: [_end(end, values, names) for end in written],
        emit=emit,
        names=table,
        namespace=namespace,
        description=description,
        columns=tuple(columns),
        auto=auto,
        job_name=job_name,
    )

    def decorate(function: F) -> F:
        tracked: F = track_function(function, tracking)
        return tracked

    return decorate


def resolve_offline(text: str) -> NodeId:
    """Return the id of a name, when no catalog is available."""
    return new_node(text, DEFAULT_NAMESPACE)


def list_datasets(ends: DatasetNames) -> list[str | Dataset]:
    """Return the datasets of a declaration: one, several or none."""
    if ends is None:
        return []
    several = isinstance(ends, Iterable) and not isinstance(ends, str | Mapping)
    return [as_dataset(end) for end in (ends if several else [ends])]


def _end(end: str | Dataset, values: Mapping[str, Any], names: NameResolver) -> DatasetUse:
    if not isinstance(end, Dataset):
        return DatasetUse(_dataset(fill_template(end, values), names))
    fields = [(str(f.get("name", "")), str(f.get("type", ""))) for f in end.schema_fields]
    dataset = DatasetId(fill_template(end.namespace, values), fill_template(end.name, values))
    return DatasetUse(dataset, FrameShape(tuple(fields)))


def _dataset(text: str, names: NameResolver) -> DatasetId:
    node = names(text)
    if not isinstance(node, DatasetId):
        raise InvalidRequestError("source", f"{text!r} is a job; a dataset is needed")
    return node


def _sending_to(
    emitter: EventEmitter | LineageEmitter | Emitter | None,
) -> Callable[[Event], None]:
    if emitter is None:
        return lambda event: shared_emitter().emit(event)
    if isinstance(emitter, Emitter):
        return emitter.emit
    given = emitter

    def send(event: Event) -> None:
        with guarded("sending an event with the given emitter"):
            given.emit(msgspec.json.decode(event.raw))

    return send


def document_column_lineage(
    job_name: str,
    lineage: Sequence[ColumnLineage],
    output_path: str | Path | None = None,
    *,
    output: str | None = None,
    job_namespace: str = DEFAULT_NAMESPACE,
    emitter: EventEmitter | LineageEmitter | Emitter | None = None,
) -> None:
    """Record how a job derives the columns of a dataset; with `output_path`, also in a file.

    The dataset is `output`, else the part of the output columns before their last dot, else a
    dataset with the name of the job.
    """
    emit_documentation(
        job_name,
        lineage,
        output,
        namespace=job_namespace,
        emit=_sending_to(emitter),
        names=resolve_offline,
    )
    if output_path is not None:
        _append_records(job_name, lineage, Path(output_path))


def emit_documentation(
    job_name: str,
    lineage: Sequence[ColumnLineage],
    output: str | None,
    *,
    namespace: str,
    emit: Callable[[Event], None],
    names: NameResolver,
) -> None:
    """Emit one event for each dataset with documented columns."""
    by_output: dict[str, list[ColumnLineage]] = {}
    for column in lineage:
        owner = output or column.output_column.rpartition(".")[0] or job_name
        by_output.setdefault(owner, []).append(column)
    job = JobId(namespace, job_name)
    for owner, columns in by_output.items():
        dataset = _dataset(owner, names)
        emit(render_documented(job, dataset, columns, lambda name: _dataset(name, names)))


def _append_records(job_name: str, lineage: Sequence[ColumnLineage], path: Path) -> None:
    recorded_at = dt.datetime.now(dt.timezone.utc).isoformat()
    records = [
        {
            "job": job_name,
            "output_column": column.output_column,
            "input_columns": column.input_columns,
            "transformation": column.transformation,
            "recorded_at": recorded_at,
        }
        for column in lineage
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.writelines(msgspec.json.encode(record) + b"\n" for record in records)
