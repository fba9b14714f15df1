"""Facets of a dataset: columns, identity, storage, statistics and results of checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec

from downriver.model.ids import bounded
from downriver.openlineage.facets.base import (
    Identifier,
    dataset_id,
    identifier,
    parse_facet,
    render_facet,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from downriver.model.ids import DatasetId

SCHEMA = "schema"


class SchemaField(msgspec.Struct, omit_defaults=True):
    """A column of a schema facet, with the columns nested in it."""

    name: str = ""
    type: str | None = None
    description: str | None = None
    fields: list[SchemaField] | None = None


class SchemaFacet(msgspec.Struct):
    """The columns of a dataset."""

    fields: list[SchemaField] | None = None


class _FieldName(msgspec.Struct, gc=False):
    name: str = ""
    fields: list[_FieldName] | None = None


class _FieldNames(msgspec.Struct, gc=False):
    fields: list[_FieldName] | None = None


class SchemaColumn(msgspec.Struct, frozen=True):
    """A column by its dotted path."""

    path: str
    type: str
    description: str


def schema_columns(body: bytes) -> list[SchemaColumn]:
    """Return the columns of a schema facet in order, nested ones after their parent."""
    return [
        SchemaColumn(path, field.type or "", field.description or "")
        for path, field in _walk(parse_facet(body, SchemaFacet).fields)
    ]


def schema_paths(body: bytes) -> list[str]:
    """Return only the dotted paths of the columns; several times faster than `schema_columns`."""
    fields = parse_facet(body, _FieldNames).fields or []
    if any(field.fields for field in fields):
        return [path for path, _ in _walk(fields)]
    return [bounded(field.name) for field in fields if field.name]


def render_schema(fields: Iterable[SchemaField]) -> msgspec.Raw:
    """Return the schema facet of a dataset with these columns."""
    return render_facet("SchemaDatasetFacet", "1-2-0", fields=list(fields))


Field = TypeVar("Field", "SchemaField", "_FieldName")


def _walk(fields: list[Field] | None) -> Iterator[tuple[str, Field]]:
    pending = [("", field) for field in reversed(fields or ())]
    while pending:
        prefix, field = pending.pop()
        if not field.name:
            continue
        path = bounded(prefix + field.name)
        yield path, field
        if field.fields:
            pending.extend((f"{path}.", inner) for inner in reversed(field.fields))


SYMLINKS = "symlinks"
LIFECYCLE = "lifecycleStateChange"
DATA_SOURCE = "dataSource"
STORAGE = "storage"
DATASET_TYPE = "datasetType"
SAME = "downriver_same"


class SymlinksFacet(msgspec.Struct):
    """Other names of the same dataset."""

    identifiers: list[Identifier] | None = None


class LifecycleFacet(msgspec.Struct):
    """A change to a dataset as a whole: created, overwritten, renamed, dropped."""

    lifecycleStateChange: str = ""  # noqa: N815
    previousIdentifier: Identifier | None = None  # noqa: N815


class DatasetTypeFacet(msgspec.Struct):
    """What a dataset is: TABLE, VIEW, TOPIC, MODEL …."""

    datasetType: str = ""  # noqa: N815


class SameFacet(msgspec.Struct):
    """A person's statement that another name is the same dataset, or that it is not."""

    other: Identifier | None = None
    same: bool = True


def parse_symlinks(body: bytes) -> list[DatasetId]:
    """Return the other names of a dataset."""
    names = parse_facet(body, SymlinksFacet).identifiers or ()
    return [dataset_id(name.namespace, name.name) for name in names if name.name]


def parse_previous_name(body: bytes) -> DatasetId | None:
    """Return the name that a dataset had before a rename, None when it was not renamed."""
    change = parse_facet(body, LifecycleFacet)
    old = change.previousIdentifier
    if change.lifecycleStateChange.upper() != "RENAME" or old is None or not old.name:
        return None
    return dataset_id(old.namespace, old.name)


def render_symlinks(names: Iterable[DatasetId], kind: str = "TABLE") -> msgspec.Raw:
    """Return the facet that lists other names of a dataset."""
    identifiers = [identifier(name, kind) for name in names]
    return render_facet("SymlinksDatasetFacet", "1-0-1", identifiers=identifiers)


def parse_same(body: bytes) -> tuple[DatasetId, bool] | None:
    """Return another name and whether it means the same dataset; None if the name is missing."""
    statement = parse_facet(body, SameFacet)
    other = statement.other
    if other is None or not other.name:
        return None
    return dataset_id(other.namespace, other.name), statement.same


def render_same(other: DatasetId, *, same: bool) -> msgspec.Raw:
    """Return the facet that states whether another name is the same dataset."""
    return render_facet("DownriverSame", "1-0-0", other=identifier(other), same=same)


def render_lifecycle(change: str, previous: DatasetId | None = None) -> msgspec.Raw:
    """Return the facet of a change such as CREATE, OVERWRITE, RENAME or DROP."""
    content = {} if previous is None else {"previousIdentifier": identifier(previous)}
    return render_facet(
        "LifecycleStateChangeDatasetFacet", "1-0-1", lifecycleStateChange=change, **content
    )


class DataSourceFacet(msgspec.Struct):
    """The system that stores a dataset."""

    name: str = ""
    uri: str = ""


def parse_dataset_type(body: bytes | None) -> str:
    """Return the type of a dataset in lower case, "" when it is unknown."""
    return parse_facet(body or b"{}", DatasetTypeFacet).datasetType.lower()


def parse_lifecycle(body: bytes | None) -> str:
    """Return the last change of a dataset as a whole, such as DROP, "" when there is none."""
    return parse_facet(body or b"{}", LifecycleFacet).lifecycleStateChange


def parse_data_source_name(body: bytes | None) -> str:
    """Return the name of the system that stores a dataset, "" when it is unknown."""
    return parse_data_source(body or b"{}").name


def parse_data_source(body: bytes) -> DataSourceFacet:
    """Return the system that stores a dataset."""
    return parse_facet(body, DataSourceFacet)


def render_data_source(uri: str, name: str = "") -> msgspec.Raw:
    """Return the facet that names the system that stores a dataset."""
    return render_facet("DatasourceDatasetFacet", "1-0-1", name=name or uri, uri=uri)


def render_storage(layer: str, file_format: str) -> msgspec.Raw:
    """Return the facet that states how a dataset is stored."""
    return render_facet("StorageDatasetFacet", "1-0-1", storageLayer=layer, fileFormat=file_format)


def render_dataset_type(kind: str) -> msgspec.Raw:
    """Return the facet that states what a dataset is, such as MODEL."""
    return render_facet("DatasetTypeDatasetFacet", "1-0-0", datasetType=kind)


VERSION = "version"
COMMIT = "downriver_commit"


class _Version(msgspec.Struct):
    datasetVersion: str | int = ""  # noqa: N815


class CommitFacet(msgspec.Struct, omit_defaults=True):
    """The origin of a dataset version: an entry of a table's log or of a model registry."""

    version: str = ""
    operation: str = ""
    user: str = ""
    engine: str = ""
    parameters: dict[str, str] = {}
    metrics: dict[str, float] = {}
    labels: list[str] = []  # aliases and stages of a model version, branches and tags of a table
    restores: str = ""  # the version that a rollback restored
    fingerprints: dict[str, str] = {}  # of the values of each column


def parse_version(body: bytes | None) -> str:
    """Return the version of a dataset, "" when it is unknown."""
    return str(parse_facet(body or b"{}", _Version).datasetVersion)


def render_version(version: str) -> msgspec.Raw:
    """Return the facet that states which version of a dataset was read or written."""
    return render_facet("DatasetVersionDatasetFacet", "1-0-1", datasetVersion=version)


def parse_commit(body: bytes | None) -> CommitFacet:
    """Return how a version was made."""
    return parse_facet(body or b"{}", CommitFacet)


def render_commit(commit: CommitFacet) -> msgspec.Raw:
    """Return the facet that states how a version was made."""
    return render_facet("DownriverCommit", "1-0-0", **msgspec.to_builtins(commit))


INPUT_STATISTICS = "inputStatistics"
OUTPUT_STATISTICS = "outputStatistics"
QUALITY_METRICS = "dataQualityMetrics"
ASSERTIONS = "dataQualityAssertions"


class ColumnStatistics(msgspec.Struct):
    """The statistics of one column."""

    nullCount: float | None = None  # noqa: N815
    distinctCount: float | None = None  # noqa: N815
    sum: float | None = None
    count: float | None = None
    min: float | None = None
    max: float | None = None
    quantiles: dict[str, float] | None = None


class StatisticsFacet(msgspec.Struct):
    """The common fields of inputStatistics, outputStatistics and dataQualityMetrics."""

    rowCount: float | None = None  # noqa: N815
    size: float | None = None  # in bytes
    columnMetrics: dict[str, ColumnStatistics] | None = None  # noqa: N815


class QualityAssertion(msgspec.Struct, omit_defaults=True):
    """The result of one check."""

    assertion: str = ""
    success: bool = True
    severity: str | None = None
    column: str | None = None
    expected: str | None = None
    actual: str | None = None


class _Assertions(msgspec.Struct):
    assertions: list[QualityAssertion] | None = None


def parse_statistics(body: bytes) -> StatisticsFacet:
    """Return the statistics of the rows and columns of a dataset in a facet."""
    return parse_facet(body, StatisticsFacet)


def parse_assertions(body: bytes) -> list[QualityAssertion]:
    """Return the results of the checks of a dataset."""
    return parse_facet(body, _Assertions).assertions or []


def render_assertions(assertions: Iterable[QualityAssertion]) -> msgspec.Raw:
    """Return the facet with the results of the checks of a dataset."""
    entries = [_render_assertion(assertion) for assertion in assertions]
    return render_facet("DataQualityAssertionsDatasetFacet", "1-1-0", assertions=entries)


def _render_assertion(assertion: QualityAssertion) -> dict[str, object]:
    return {"assertion": assertion.assertion, "success": assertion.success} | {
        name: value
        for name in ("severity", "column", "expected", "actual")
        if (value := getattr(assertion, name)) is not None
    }


def render_input_statistics(
    *, rows: int | None = None, size: int | None = None, files: int | None = None
) -> msgspec.Raw:
    """Return the facet with the amount of data that a run read; `size` is in bytes."""
    counts = _counts(rows, size, files)
    return render_facet("InputStatisticsInputDatasetFacet", "1-0-0", **counts)


def render_output_statistics(
    *, rows: int | None = None, size: int | None = None, files: int | None = None
) -> msgspec.Raw:
    """Return the facet with the amount of data that a run wrote; `size` is in bytes."""
    counts = _counts(rows, size, files)
    return render_facet("OutputStatisticsOutputDatasetFacet", "1-0-2", **counts)


def _counts(rows: int | None, size: int | None, files: int | None) -> dict[str, int]:
    counts = {"rowCount": rows, "size": size, "fileCount": files}
    return {name: count for name, count in counts.items() if count is not None}
