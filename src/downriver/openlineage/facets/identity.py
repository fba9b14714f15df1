"""Facets about the identity and storage of a dataset: other names, renames, location, type."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from downriver.openlineage.facets.base import (
    Identifier,
    dataset_id,
    identifier,
    parse_facet,
    render_facet,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from downriver.model.ids import DatasetId

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
    """Return another name of a dataset and whether it is the same; None if it names nothing."""
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


def render_data_source(uri: str) -> msgspec.Raw:
    """Return the facet that names the system a dataset is in."""
    return render_facet("DatasourceDatasetFacet", "1-0-1", name=uri, uri=uri)


def render_storage(layer: str, file_format: str) -> msgspec.Raw:
    """Return the facet that tells how a dataset is stored."""
    return render_facet("StorageDatasetFacet", "1-0-1", storageLayer=layer, fileFormat=file_format)


def render_dataset_type(kind: str) -> msgspec.Raw:
    """Return the facet that tells what a dataset is, such as MODEL."""
    return render_facet("DatasetTypeDatasetFacet", "1-0-0", datasetType=kind)
