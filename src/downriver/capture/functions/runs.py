"""A call of a tracked function, and the datasets that it reads and writes."""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Mapping
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from downriver.errors import InvalidRequestError
from downriver.model.ids import DatasetId, JobId


@dataclass
class Dataset:
    """A dataset by its OpenLineage namespace and name; `schema_fields` have `name` and `type`."""

    namespace: str
    name: str
    schema_fields: list[dict[str, Any]] = field(default_factory=list)


def as_dataset(value: Any) -> str | Dataset:
    """Return a dataset from a name, URI or path, a dictionary, or an object of a library.

    A dictionary or object has a `name`, and may have a `namespace` and the fields of its schema,
    as the datasets of OpenLineage have. An Airflow asset has a `uri`.
    """
    if isinstance(value, str | Dataset):
        return value
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))

    def read(key: str) -> Any:
        return value.get(key) if isinstance(value, Mapping) else getattr(value, key, None)

    name, namespace, uri = read("name"), read("namespace"), read("uri")
    if isinstance(name, str) and name and isinstance(namespace, str) and namespace:
        return Dataset(namespace, name, read("schema_fields") or _schema_fields(read("facets")))
    for text in (uri, name):
        if isinstance(text, str) and text:
            return text
    raise InvalidRequestError(
        "dataset",
        f"{value!r} names no dataset; write a name, a URI or "
        '{"namespace": "postgres://warehouse", "name": "public.orders"}',
    )


def name_dataset(value: Any) -> str:
    """Return the name of a dataset. It accepts the same values as `as_dataset`."""
    dataset = as_dataset(value)
    return dataset if isinstance(dataset, str) else f"dataset:{dataset.namespace}:{dataset.name}"


def _schema_fields(facets: Any) -> list[dict[str, Any]]:
    schema = facets.get("schema") if isinstance(facets, Mapping) else None
    fields = schema.get("fields") if isinstance(schema, Mapping) else getattr(schema, "fields", ())
    return [
        dict(field)
        if isinstance(field, Mapping)
        else {"name": getattr(field, "name", ""), "type": getattr(field, "type", None) or ""}
        for field in fields or ()
    ]


@dataclass
class ColumnLineage:
    """How one output column is computed; an input column is `dataset.column`."""

    output_column: str
    input_columns: list[str]
    transformation: str = ""


def fill_template(template: str, values: Mapping[str, Any]) -> str:
    """Return a text with the call's arguments in place of their names in braces."""
    return template.format_map(values) if "{" in template else template


class FrameShape(NamedTuple):
    """The columns of a frame with their types, and its number of rows."""

    fields: tuple[tuple[str, str], ...] = ()
    rows: int | None = None

    def plus(self, other: FrameShape) -> FrameShape:
        """Return the combined shape: the numbers of rows of frames from a generator add up."""
        counts = [rows for rows in (self.rows, other.rows) if rows is not None]
        return FrameShape(self.fields or other.fields, sum(counts) if counts else None)


UNKNOWN_SHAPE = FrameShape()


class DatasetUse(NamedTuple):
    """A dataset that was read or written, with the shape of the frame if it is known."""

    dataset: DatasetId
    shape: FrameShape = UNKNOWN_SHAPE


class FunctionRun:
    """A run of a tracked function, inside the run that called it. Safe for threads."""

    def __init__(self, job: JobId, parent: FunctionRun | None) -> None:
        self.job = job
        self.id = str(uuid.uuid4())
        self.parent = parent
        self.root: FunctionRun = parent.root if parent is not None else self
        self._inputs: dict[DatasetId, FrameShape] = {}
        self._outputs: dict[DatasetId, FrameShape] = {}
        self._lock = threading.Lock()

    def reads(self, dataset: DatasetId, shape: FrameShape = UNKNOWN_SHAPE) -> None:
        """Record that the run read a dataset."""
        with self._lock:
            self._inputs[dataset] = self._inputs.get(dataset, UNKNOWN_SHAPE).plus(shape)

    def writes(self, dataset: DatasetId, shape: FrameShape = UNKNOWN_SHAPE) -> None:
        """Record that the run wrote a dataset."""
        with self._lock:
            self._outputs[dataset] = self._outputs.get(dataset, UNKNOWN_SHAPE).plus(shape)

    @property
    def inputs(self) -> list[DatasetUse]:
        """The datasets read, without those that the run itself wrote."""
        with self._lock:
            return [
                DatasetUse(*item) for item in self._inputs.items() if item[0] not in self._outputs
            ]

    @property
    def outputs(self) -> list[DatasetUse]:
        """The datasets written."""
        with self._lock:
            return [DatasetUse(*item) for item in self._outputs.items()]


_current: ContextVar[FunctionRun | None] = ContextVar("downriver_run", default=None)


def current_run() -> FunctionRun | None:
    """Return the run of the innermost tracked function that is running."""
    return _current.get()


def enter_run(run: FunctionRun) -> Token[FunctionRun | None]:
    """Make a run the current one; pass the returned token to `leave_run`."""
    return _current.set(run)


def leave_run(token: Token[FunctionRun | None]) -> None:
    """Restore the run that was current before."""
    _current.reset(token)


_LIBRARIES = frozenset({"pandas", "polars", "pyarrow", "duckdb", "_duckdb"})


def library_of(value: Any) -> str:
    """Return the library that defines the type of a value."""
    return type(value).__module__.partition(".")[0]


def is_frame(value: Any) -> bool:
    """Return whether a value is a frame of a supported library."""
    return library_of(value) in _LIBRARIES and _has_table_attributes(value)


def describe_frame(value: Any) -> FrameShape:
    """Return the shape of a frame without computing anything; empty for other values."""
    if not is_frame(value):
        return UNKNOWN_SHAPE
    match library_of(value):
        case "pandas":
            return FrameShape(_pairs(value.columns, value.dtypes), len(value))
        case "polars":
            return _polars(value)
        case "pyarrow":
            schema = value.schema
            rows = getattr(value, "num_rows", None)
            return FrameShape(_pairs(schema.names, schema.types), rows)
        case _:
            return FrameShape(_pairs(value.columns, value.types))


def _has_table_attributes(value: Any) -> bool:
    kind = type(value)  # reading attributes of a lazy frame may start a computation
    return hasattr(kind, "columns") and any(
        hasattr(kind, name) for name in ("dtypes", "schema", "types")
    )


def _polars(value: Any) -> FrameShape:
    if hasattr(value, "collect_schema"):  # a lazy frame has it too, but no height
        schema = value.collect_schema()
        rows = getattr(value, "height", None)
        return FrameShape(_pairs(schema.names(), schema.dtypes()), rows)
    return FrameShape(_pairs(value.columns, value.dtypes), value.height)


def _pairs(names: Any, types: Any) -> tuple[tuple[str, str], ...]:
    return tuple((str(name), str(kind)) for name, kind in zip(names, types, strict=True))
