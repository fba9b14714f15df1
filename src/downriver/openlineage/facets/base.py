"""The facets that carry lineage, decoded from their raw bytes.

A facet is whatever a producer sent. Each reader here takes the well-formed path first and, when
that fails, salvages entry by entry: one odd value must not cost the rest of the facet.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cache
from types import UnionType
from typing import Any, NamedTuple, TypeVar, get_args, get_origin

import msgspec

from downriver.model.ids import DatasetId, JobId, bounded


class Transformation(msgspec.Struct, gc=False):
    """How an input field turns into an output field."""

    type: str = ""
    subtype: str | None = None
    description: str | None = None
    masking: bool | None = None
    confidence: str | None = None


class Identifier(msgspec.Struct, gc=False):
    """A dataset or job named inside a facet."""

    namespace: str = ""
    name: str = ""
    type: str = ""


class InputField(msgspec.Struct, gc=False):
    """A source in a columnLineage or lineage facet; without a field, all of its dataset."""

    namespace: str | None = None
    name: str | None = None
    type: str = "DATASET"
    field: str | None = None
    transformations: list[Transformation] | None = None

    def dataset(self) -> DatasetId | None:
        """Return the dataset this names, if it does."""
        if self.type.upper() != "DATASET" or not self.name:
            return None
        return dataset_id(self.namespace or "", self.name)


class ColumnEntry(msgspec.Struct, gc=False):
    """One output field of a columnLineage facet, with the pair older producers send."""

    inputFields: list[InputField] | None = None  # noqa: N815
    transformationType: str | None = None  # noqa: N815
    transformationDescription: str | None = None  # noqa: N815


class ColumnLineageFacet(msgspec.Struct, gc=False):
    """columnLineage 1-2-0 and before."""

    fields: dict[str, ColumnEntry] | None = None
    dataset: list[InputField] | None = None


class FieldEntry(msgspec.Struct, gc=False):
    """One output field of a lineage facet."""

    inputs: list[InputField] | None = None


class LineageEntry(msgspec.Struct, gc=False):
    """lineage 1-0-0: what feeds one target; on a dataset, the target is that dataset."""

    namespace: str | None = None
    name: str | None = None
    type: str = "DATASET"
    inputs: list[InputField] | None = None
    fields: dict[str, FieldEntry] | None = None

    def sources(self) -> list[InputField]:
        """Return every source named, at entity or field level."""
        by_field = [i for entry in (self.fields or {}).values() for i in entry.inputs or ()]
        return [*(self.inputs or ()), *by_field]


class JobLineageFacet(msgspec.Struct):
    """The lineage facet of a job."""

    entries: list[LineageEntry] | None = None


class SymlinksFacet(msgspec.Struct):
    """Other names of the same dataset."""

    identifiers: list[Identifier] | None = None


class LifecycleFacet(msgspec.Struct):
    """What happened to a dataset as a whole."""

    lifecycleStateChange: str = ""  # noqa: N815
    previousIdentifier: Identifier | None = None  # noqa: N815


class JobReference(msgspec.Struct):
    """A job, as the parent and jobDependencies facets name it."""

    job: Identifier | None = None


class ParentFacet(msgspec.Struct):
    """The job that runs this one, and the one at the top of them all."""

    job: Identifier | None = None
    root: JobReference | None = None


class JobDependenciesFacet(msgspec.Struct):
    """The jobs that must run before and after."""

    upstream: list[JobReference] | None = None
    downstream: list[JobReference] | None = None


class BlindSpotEntry(msgspec.Struct):
    """Something a capture could not see."""

    kind: str = "unknown"
    message: str = ""
    line: int = 0


class BlindSpotsFacet(msgspec.Struct):
    """Our own facet of a job: what reading its code or plan could not see through."""

    spots: list[BlindSpotEntry] | None = None


BLIND_SPOTS = "downriver_blindSpots"
READ_JOB_TYPE = "READ"  # jobType of a job that only reads, such as Spark's `collect`


class AssetFacet(msgspec.Struct, omit_defaults=True):
    """Our own facet of a dataset or job: what it was registered as."""

    id: str = ""
    assetType: str = ""  # noqa: N815
    name: str = ""
    sourceRef: str = ""  # noqa: N815


ASSET = "downriver_asset"


class SchemaField(msgspec.Struct):
    """A column, possibly with columns inside."""

    name: str = ""
    type: str | None = None
    description: str | None = None
    fields: list[SchemaField] | None = None


class SchemaFacet(msgspec.Struct):
    """The columns of a dataset."""

    fields: list[SchemaField] | None = None


class SchemaName(msgspec.Struct, gc=False):
    """A column by name only."""

    name: str = ""
    fields: list[SchemaName] | None = None


class SchemaNames(msgspec.Struct, gc=False):
    """The columns of a dataset by name only."""

    fields: list[SchemaName] | None = None


class SchemaColumn(msgspec.Struct, frozen=True):
    """A column of a schema facet, nested ones by their dotted path."""

    path: str
    type: str
    description: str


Facet = TypeVar("Facet", bound=msgspec.Struct)


def dataset_id(namespace: str, name: str) -> DatasetId:
    """Return the identity behind a name as sent."""
    return DatasetId(bounded(namespace), bounded(name))


def job_id(namespace: str, name: str) -> JobId:
    """Return the identity behind a name as sent."""
    return JobId(bounded(namespace), bounded(name))


def facet_digest(body: bytes) -> bytes:
    """Return what tells one facet body from another."""
    return hashlib.sha256(body).digest()[:16]


def read_facet(body: bytes, kind: type[Facet]) -> Facet:
    """Decode a facet, keeping what is well formed when something in it is not."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError:
        return _read_malformed(body, kind)
    except (msgspec.DecodeError, RecursionError):
        return kind()


def _read_malformed(body: bytes, kind: type[Facet]) -> Facet:
    try:
        return _salvage(msgspec.json.decode(body), kind)
    except (msgspec.DecodeError, RecursionError):
        return kind()


def _salvage(value: object, kind: type[Facet]) -> Facet:
    if not isinstance(value, dict):
        return kind()
    kept = {}
    for field in msgspec.structs.fields(kind):
        if field.name not in value:
            continue
        part = _salvage_value(value[field.name], field.type)
        if part is not msgspec.UNSET:
            kept[field.name] = part
    return kind(**kept)


def _salvage_value(value: Any, kind: Any) -> Any:
    """Return the well-formed part of `value`, or UNSET when nothing of it is."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError:
        container, inner = _shape(kind)
    if inner is None:
        return msgspec.UNSET
    if container is list and isinstance(value, list):
        return [_salvage(item, inner) for item in value if isinstance(item, dict)]
    if container is dict and isinstance(value, dict):
        return {k: _salvage(v, inner) for k, v in value.items() if isinstance(v, dict)}
    return _salvage(value, inner) if container is None else msgspec.UNSET


class _Shape(NamedTuple):
    """The struct inside a field, if there is one, and whether it comes in a list or a dict."""

    container: type | None
    inner: type[msgspec.Struct] | None


@cache
def _shape(kind: Any) -> _Shape:
    """Look into `X`, `list[X]` and `dict[str, X]`, each perhaps with `| None`."""
    options = [kind, *get_args(kind)] if get_origin(kind) is UnionType else [kind]
    for option in options:
        inner = [option, *get_args(option)][-1]
        if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
            return _Shape(get_origin(option), inner)
    return _Shape(None, None)


def read_blind_spots(body: bytes) -> list[BlindSpotEntry]:
    """Return what a job says could not be seen of it."""
    return read_facet(body, BlindSpotsFacet).spots or []


def read_asset(body: bytes) -> AssetFacet:
    """Return what a node was registered as."""
    return read_facet(body, AssetFacet)


def schema_columns(body: bytes) -> list[SchemaColumn]:
    """Return the columns of a schema facet in order, nested ones after their parent."""
    return [
        SchemaColumn(path, field.type or "", field.description or "")
        for path, field in _fields(read_facet(body, SchemaFacet).fields)
    ]


def schema_paths(body: bytes) -> list[str]:
    """Return only the dotted paths of a schema facet's columns, which is much quicker."""
    fields = read_facet(body, SchemaNames).fields or []
    if any(field.fields for field in fields):
        return [path for path, _ in _fields(fields)]
    return [bounded(field.name) for field in fields if field.name]


NamedField = TypeVar("NamedField", "SchemaField", "SchemaName")


def _fields(fields: list[NamedField] | None) -> Iterator[tuple[str, NamedField]]:
    waiting = [("", field) for field in reversed(fields or ())]
    while waiting:
        prefix, field = waiting.pop()
        if not field.name:
            continue
        path = bounded(prefix + field.name)
        yield path, field
        if field.fields:
            waiting.extend((f"{path}.", inner) for inner in reversed(field.fields))
