"""The schema registry: versions of a dataset's schema, and their compatibility."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.errors import InvalidRequestError
from downriver.govern.contracts.evaluation import NO_SCHEMA
from downriver.govern.schemas import check_compatibility
from downriver.govern.schemas.compatibility import SchemaComparison, unknown_types
from downriver.model.answers import is_complete
from downriver.model.ids import DatasetId
from downriver.model.trust.schemas import (
    CompatibilityMode,
    DeclaredColumn,
    NumberedSchema,
    SchemaCheck,
    SchemaDiff,
    SchemaRegistry,
)
from downriver.model.views.history import RetypedColumn
from downriver.openlineage.facets.contract import CONTRACT, parse_contract_facet
from downriver.service.views.history import HistoryApi

if TYPE_CHECKING:
    from collections.abc import Sequence

    from downriver.service.session import StoreSession


class SchemaApi:
    """The versions of schemas. Call it to list those of a dataset."""

    def __init__(self, session: StoreSession) -> None:
        self._session = session

    def __call__(self, dataset: str) -> SchemaRegistry:
        """Return the versions of a dataset's schema, the oldest first."""
        name, _ = self._resolve(dataset)
        versions = HistoryApi(self._session).schema_versions(name).versions
        if not versions:
            raise InvalidRequestError("dataset", f"{name}: {NO_SCHEMA}")
        current = max(range(len(versions)), key=lambda i: (versions[i].last_seen, i))
        return SchemaRegistry(
            dataset=name,
            versions=[
                NumberedSchema(number=i + 1, current=i == current, version=version)
                for i, version in enumerate(versions)
            ],
        )

    def diff(self, dataset: str, *, old: int | None = None, new: int | None = None) -> SchemaDiff:
        """Return what differs between two versions; by default the last one and the one before."""
        found = self(dataset)
        latest = _by_last_seen(found)
        after = latest[0] if new is None else _numbered(found, new, "new")
        if old is None and len(latest) > 1:
            before = next(each for each in latest if each is not after)
        else:
            before = _numbered(found, 1 if old is None else old, "old")
        one, other = ({c.name: c for c in _columns(each)} for each in (before, after))
        return SchemaDiff(
            dataset=found.dataset,
            old=before.number,
            new=after.number,
            added=[column for name, column in other.items() if name not in one],
            removed=[column for name, column in one.items() if name not in other],
            retyped=[
                RetypedColumn(name=name, old=one[name].type, new=column.type)
                for name, column in other.items()
                if name in one and one[name].type != column.type
            ],
        )

    def check(
        self,
        dataset: str,
        *,
        mode: CompatibilityMode | None = None,
        against: Sequence[DeclaredColumn] | None = None,
        place: str = "the declared schema",
    ) -> SchemaCheck:
        """Return whether a declared schema is compatible with the current one.

        Without one, the current version is compared with the one before. The mode is by default
        that of the dataset's contract, else backward.
        """
        found = self(dataset)
        latest = _by_last_seen(found)
        if against is None and len(latest) == 1:
            raise InvalidRequestError(
                "dataset", f"{found.dataset} has one version; name a schema to compare it with"
            )
        old = latest[0] if against is not None else latest[1]
        new_columns = _columns(latest[0]) if against is None else list(against)
        schemas = SchemaComparison(_columns(old), new_columns)
        wanted = mode or self._contract_mode(dataset) or CompatibilityMode.BACKWARD
        broken = check_compatibility(schemas, wanted)
        names = (
            f"version {old.number}",
            place if against is not None else f"version {latest[0].number}",
        )
        spots = unknown_types(schemas, found.dataset, old=names[0], new=names[1])
        return SchemaCheck(
            dataset=found.dataset,
            mode=wanted,
            old=names[0],
            new=names[1],
            compatible=not broken,
            incompatibilities=broken,
            complete=is_complete(spots),
            blind_spots=spots,
        )

    def _contract_mode(self, dataset: str) -> CompatibilityMode | None:
        _, group = self._resolve(dataset)
        with self._session.reading() as view:
            facets = view.reader.facets.of_each(group, (CONTRACT,))
        for named in facets.values():
            contract = parse_contract_facet(named[CONTRACT])
            if contract is not None and contract.compatibility is not None:
                return contract.compatibility
        return None

    def _resolve(self, dataset: str) -> tuple[str, list[int]]:
        with self._session.reading() as view:
            resolved = self._session.resolve(dataset, view)
            if not isinstance(resolved.id, DatasetId):
                raise InvalidRequestError("dataset", f"{resolved.id} is not a dataset")
            return str(resolved.id), view.graph.nodes.identities.group(resolved.node)


def _by_last_seen(registry: SchemaRegistry) -> list[NumberedSchema]:
    return sorted(
        registry.versions, key=lambda each: (each.version.last_seen, each.number), reverse=True
    )


def _numbered(registry: SchemaRegistry, number: int, field: str) -> NumberedSchema:
    for each in registry.versions:
        if each.number == number:
            return each
    known = f"1 to {len(registry.versions)}"
    raise InvalidRequestError(field, f"{registry.dataset} has no version {number}; it has {known}")


def _columns(schema: NumberedSchema) -> list[DeclaredColumn]:
    return [
        DeclaredColumn(name=column.name, type=column.type or "")
        for column in schema.version.columns
    ]
