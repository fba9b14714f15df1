"""YAML files that state contracts: our own form, or the Open Data Contract Standard."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from downriver.errors import InvalidRequestError
from downriver.govern.contracts.open_standard import is_open_standard, parse_open_standard
from downriver.govern.drift.runs import parse_period
from downriver.govern.schemas import read_schema_file
from downriver.impact.changes.request import read_yaml
from downriver.model.trust.contracts import DataContract, RowBounds
from downriver.model.trust.schemas import CompatibilityMode, DeclaredColumn, LogicalType

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_SUFFIXES = frozenset({".yml", ".yaml"})


class StatedContract(NamedTuple):
    """A contract, and the file that states it."""

    contract: DataContract
    path: str | None = None


class _Column(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    name: str
    type: str = ""
    logical_type: LogicalType | None = None
    required: bool = False
    description: str = ""


class _Rows(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    min: float | None = None
    max: float | None = None


class _Contract(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    dataset: str
    owner: str = ""
    description: str = ""
    version: str = ""
    consumers: list[str] = []
    columns: list[_Column] = []
    schema: str | None = None
    closed: bool = False
    compatibility: CompatibilityMode | None = None
    freshness: str | None = None
    rows: _Rows | None = None


def read_contracts(places: Sequence[Path]) -> list[StatedContract]:
    """Return the contracts of files, and of the YAML files in folders."""
    stated_contracts = [
        StatedContract(contract, str(path))
        for place in places
        for path in _list_files(place)
        for contract in parse_contract(read_yaml(path, "FILE"), str(path), folder=path.parent)
    ]
    _check_distinct(stated_contracts)
    return stated_contracts


def _list_files(place: Path) -> Iterator[Path]:
    if not place.is_dir():
        yield place
        return
    files = sorted(path for path in place.rglob("*") if path.suffix.lower() in _SUFFIXES)
    if not files:
        raise InvalidRequestError("FILE", f"{place} has no YAML file")
    yield from files


def _check_distinct(stated_contracts: Sequence[StatedContract]) -> None:
    known: dict[str, str | None] = {}
    for contract, path in stated_contracts:
        if contract.dataset in known:
            places = f"{known[contract.dataset]} and {path}"
            raise InvalidRequestError("FILE", f"two contracts of {contract.dataset}: {places}")
        known[contract.dataset] = path


def parse_contract(
    content: Any, place: str = "contract", *, folder: Path | None = None
) -> list[DataContract]:
    """Return the contracts in a document: one, or in the standard one for each object.

    `folder` is where the file of `schema` is; without one, a schema file is refused.
    """
    if is_open_standard(content):
        return parse_open_standard(content, place)
    try:
        stated = msgspec.convert(content, _Contract)
    except msgspec.ValidationError as exc:
        raise InvalidRequestError(place, str(exc)) from exc
    if stated.freshness is not None and parse_period(stated.freshness) is None:
        raise InvalidRequestError(place, f"freshness: {stated.freshness!r} is not a period: 26h")
    contract = DataContract(
        dataset=stated.dataset.strip(),
        owner=stated.owner,
        description=stated.description,
        version=stated.version,
        consumers=stated.consumers,
        columns=_columns(stated, place, folder),
        closed=stated.closed,
        compatibility=stated.compatibility,
        freshness=stated.freshness,
        rows=None if stated.rows is None else RowBounds(min=stated.rows.min, max=stated.rows.max),
    )
    if not contract.dataset:
        raise InvalidRequestError(place, "dataset: empty")
    return [contract]


def _columns(stated: _Contract, place: str, folder: Path | None) -> list[DeclaredColumn]:
    if stated.schema is None:
        return [
            DeclaredColumn(
                name=column.name,
                type=column.type,
                logical_type=column.logical_type,
                required=column.required,
                description=column.description,
            )
            for column in stated.columns
        ]
    if stated.columns:
        raise InvalidRequestError(place, "has both `columns` and `schema`")
    if folder is None:
        raise InvalidRequestError(place, "schema: a file cannot be named here; state `columns`")
    name, _, message = stated.schema.partition("#")
    columns = read_schema_file(folder / name, message=message or None)
    return [msgspec.structs.replace(c, required=_has_no_nulls(c)) for c in columns]


def _has_no_nulls(column: DeclaredColumn) -> bool:
    return bool(column.required) if column.nullable is None else not column.nullable
