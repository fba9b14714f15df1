"""Registration of assets: their identity, the lineage in their code, and the events to store."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from downriver.capture.code import render_dataset_facets, render_job
from downriver.capture.dataset_names import dataset_from
from downriver.capture.scan import (
    AssetRegistration,
    Repository,
    ScanCatalog,
    can_be_at,
    candidate_names,
    make_asset_job,
    read_asset_code,
)
from downriver.errors import AmbiguousNameError, EntityNotFoundError, InvalidAssetError
from downriver.graph.names.assets import Assets, find_asset, is_taken
from downriver.graph.names.resolution import find_entity
from downriver.model.answers import BlindSpot, is_complete
from downriver.model.assets import ASSET_TYPES, RegisteredAsset, asset_id
from downriver.model.ids import DatasetId, JobId, short_name
from downriver.openlineage.events import dataset_event
from downriver.openlineage.facets.custom import ASSET, AssetFacet, BlindSpotEntry, render_asset
from downriver.openlineage.facets.dataset import SYMLINKS, render_symlinks

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from downriver.capture.code import CodeJob
    from downriver.capture.scan import ScanResult
    from downriver.graph.index.identities import Identities
    from downriver.model.ids import NodeId
    from downriver.openlineage.facets.base import Facets
    from downriver.openlineage.wire import Event
    from downriver.store import CatalogReader


_UNREAD = BlindSpotEntry(
    "code_not_read", "code not available: the columns that it uses are unknown; send it as `source`"
)


class RegistrationEvents(NamedTuple):
    """The events of a registration, and the data of its answer."""

    events: list[Event]
    asset: AssetFacet
    job: CodeJob
    was_read: bool


class Registrar:
    """Registers assets in one view of the catalog."""

    def __init__(
        self,
        reader: CatalogReader,
        identities: Identities,
        names: ScanCatalog,
        repository: Repository | None,
    ) -> None:
        self._reader = reader
        self._identities = identities
        self._names = names
        self._repository = repository

    def upstream(self, wanted: Sequence[str]) -> dict[str, DatasetId | JobId]:
        """Return the declared upstreams of an asset; an unknown name is an error."""
        upstream_ids: dict[str, DatasetId | JobId] = {}
        for name in wanted:
            try:
                entity = find_asset(name, self._reader, self._identities)
            except (EntityNotFoundError, AmbiguousNameError) as exc:
                raise InvalidAssetError("upstream_assets", exc.message) from exc
            if not isinstance(entity.id, DatasetId | JobId):
                raise InvalidAssetError("upstream_assets", f"{name!r} is a column, not an asset")
            upstream_ids[name] = entity.id
        return upstream_ids

    def register(self, asset: AssetRegistration, at: int) -> RegistrationEvents:
        """Return the events that register an asset."""
        check_asset(asset)
        table = None if asset.is_job else self._dataset(asset)
        node: NodeId = table or self._job(asset.name)
        scan = read_asset_code(asset, self._repository, self._own_names(asset, table))
        if scan is not None and scan.unread and not scan.jobs:
            unread = scan.unread[0]
            raise InvalidAssetError("source_ref", f"{unread.location}: {unread.detail}")
        job = make_asset_job(asset, self._job(asset.name), scan)
        if scan is None and job.inputs:
            job.add_blind_spot(_UNREAD)
        facet_ = AssetFacet(
            id=self._id(node),
            assetType=asset.asset_type,
            name=asset.name,
            sourceRef=asset.source_ref,
        )
        events = list(self._events(asset, table, job, scan, facet_, at))
        return RegistrationEvents(events, facet_, job, scan is not None)

    def _id(self, node: NodeId) -> str:
        """Return an asset's id. It is longer if another asset has the short one."""
        short = asset_id(node)
        return asset_id(node, 16) if is_taken(short, node, self._reader) else short

    # Identity

    def _dataset(self, asset: AssetRegistration) -> DatasetId:
        for name in candidate_names(asset.source_ref):
            dataset = self._names.find(name)
            if dataset is not None and can_be_at(dataset, asset.source_ref):
                return dataset
        named = dataset_from(asset.source_ref)
        if named is not None:
            return named
        dataset = self._names.find(asset.name)
        if dataset is not None and _is_called(dataset, asset.name):
            return dataset
        return DatasetId(self._names.namespace, asset.name)

    def _job(self, name: str) -> JobId:
        entity = find_entity(f"job:{name}", self._reader, self._identities)
        if entity is not None and isinstance(entity.id, JobId) and _is_called(entity.id, name):
            return entity.id
        return JobId(self._names.namespace, name)

    def _own_names(self, asset: AssetRegistration, table: DatasetId | None) -> ScanCatalog:
        """Return how names in the code of an asset resolve: to its own names first."""
        find = self._names.find
        called = {asset.name.casefold(), PurePosixPath(asset.source_ref).stem.casefold()}

        def found(name: str) -> DatasetId | None:
            own = table is not None and short_name(name) in called
            return table if own else find(name)

        return msgspec.structs.replace(self._names, find=found)

    # The events

    def _events(
        self,
        asset: AssetRegistration,
        table: DatasetId | None,
        job: CodeJob,
        scan: ScanResult | None,
        registered: AssetFacet,
        at: int,
    ) -> Iterator[Event]:
        if table is None:
            yield render_job(job, at, facets={ASSET: render_asset(registered)})
            return
        facets: Facets = {ASSET: render_asset(registered), **self._alias(asset, table)}
        for note in scan.notes if scan is not None else []:
            if note.id == table:
                facets.update(render_dataset_facets(note))
        yield dataset_event(table, at, facets)
        if job.inputs or job.after:
            job.add_output(table)
            yield render_job(job, at)

    def _alias(self, asset: AssetRegistration, table: DatasetId) -> Facets:
        """Return an alias if a table is registered under a different name."""
        if _is_called(table, asset.name):
            return {}
        other = DatasetId(self._names.namespace, asset.name)
        return {SYMLINKS: render_symlinks([other])}


def check_asset(asset: AssetRegistration) -> None:
    """Raise an error if an asset is invalid."""
    if asset.asset_type not in ASSET_TYPES:
        wanted = ", ".join(ASSET_TYPES)
        raise InvalidAssetError("asset_type", f"{asset.asset_type!r} is not one of {wanted}")
    if not asset.name.strip():
        raise InvalidAssetError("name", "empty")


def _is_called(node: NodeId, name: str) -> bool:
    return node.name.casefold() == name.casefold() or short_name(node.name) == name.casefold()


def render_registration(done: RegistrationEvents, assets: Assets) -> RegisteredAsset:
    """Return the answer to a registration that is stored."""
    nodes: list[NodeId] = [*done.job.inputs, *done.job.after]
    spots = [
        BlindSpot(kind=spot.kind, entity=done.asset.id, message=f"line {spot.line}: {spot.message}")
        for spot in done.job.spots
    ]
    return RegisteredAsset(
        id=done.asset.id,
        name=done.asset.name,
        asset_type=done.asset.assetType,
        source_ref=done.asset.sourceRef,
        upstream=[assets.ref(node) for node in nodes],
        read=done.was_read,
        columns=sorted({reference.field for reference in done.job.references}),
        complete=is_complete(spots),
        blind_spots=spots,
    )
