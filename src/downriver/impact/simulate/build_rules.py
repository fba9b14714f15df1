"""How dbt builds a table after the columns of its query changed: contracts, incremental models."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from downriver.impact.simulate.column_types import parse_type
from downriver.impact.simulate.delta import ABSENT, ColumnDelta, Delta, DeltaKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from downriver.impact.simulate.script.job_script import ScriptOutput
    from downriver.openlineage.facets.custom import BuildFacet

_RESHAPING = (*ABSENT, DeltaKind.ADDED, DeltaKind.RETYPED)


class BuildOutcome(NamedTuple):
    """The result of a build: an `error`, or the difference that readers see.

    `note` describes other effects on the table; `data_loss` is true when values are deleted.
    """

    delta: Delta
    error: str = ""
    note: str = ""
    data_loss: bool = False


def adds_columns(build: BuildFacet) -> bool:
    """Return whether a build adds the new columns of its query to the table, or checks them."""
    return build.materialized != "incremental" or build.on_schema_change in _FOLLOWS_QUERY


def apply_build(build: BuildFacet, delta: Delta) -> BuildOutcome:
    """Return the effect on the table of a model whose query has this difference."""
    if build.materialized != "incremental":
        return BuildOutcome(delta)
    match build.on_schema_change:
        case "fail":
            return _fail(delta)
        case "append_new_columns":
            return _append(delta)
        case "sync_all_columns":
            return _synchronize(delta)
        case _:
            return _ignore(delta)


_FOLLOWS_QUERY = frozenset({"fail", "append_new_columns", "sync_all_columns"})


def _fail(delta: Delta) -> BuildOutcome:
    names = delta.columns(*_RESHAPING)
    if not names:
        return BuildOutcome(delta)
    listed = ", ".join(names)
    return BuildOutcome(delta, f"on_schema_change is fail, and its query changes {listed}")


def _ignore(delta: Delta) -> BuildOutcome:
    names = delta.columns(*ABSENT)
    if not names:
        return BuildOutcome(delta)
    listed = ", ".join(names)
    return BuildOutcome(
        delta, f"inserts into a table that has {listed}, which its query no longer outputs"
    )


def _append(delta: Delta) -> BuildOutcome:
    """Apply `append_new_columns`: removed columns stay, and are null in new rows."""
    absent = delta.columns(*ABSENT)
    if not absent:
        return BuildOutcome(delta)
    kept = _without_absent(delta)
    for column, touch in absent.items():
        kept.put(column, DeltaKind.CHANGED, ColumnDelta("", touch.trail))
    listed = ", ".join(absent)
    return BuildOutcome(kept, note=f"append_new_columns keeps {listed}, null in new rows")


def _synchronize(delta: Delta) -> BuildOutcome:
    """Apply `sync_all_columns`: removed columns are dropped, renamed ones replaced."""
    absent = delta.columns(*ABSENT)
    if not absent:
        return BuildOutcome(delta)
    kept = _without_absent(delta)
    for column, touch in absent.items():
        kept.put(column, DeltaKind.LOST, ColumnDelta("", touch.trail))
    listed = ", ".join(absent)
    note = f"sync_all_columns runs DROP COLUMN {listed}: data loss in all existing rows"
    return BuildOutcome(kept, note=note, data_loss=True)


def _without_absent(delta: Delta) -> Delta:
    """Return a difference in which renamed columns count as new, and no column is absent."""
    kept = Delta(
        rows=delta.rows, stale=delta.stale, possible=delta.possible, deprecated=delta.deprecated
    )
    for (column, kind), touch in delta.touches.items():
        if kind is DeltaKind.RENAMED:
            kept.put(touch.to, DeltaKind.ADDED, ColumnDelta("", touch.trail))
        elif kind is not DeltaKind.LOST:
            kept.put(column, kind, touch)
    return kept


class ContractViolation(NamedTuple):
    """A column that does not fit the contract of its model."""

    column: str
    reason: str


def check_contract(build: BuildFacet, output: ScriptOutput) -> Iterator[ContractViolation]:
    """Yield the columns of a query's output that violate the enforced contract of its model."""
    if not output.open:
        yield from check_columns(build, {c.name.casefold(): c.type.family for c in output.columns})


def check_columns(build: BuildFacet, given: Mapping[str, str]) -> Iterator[ContractViolation]:
    """Yield the columns, by name and family of type, that violate a contract."""
    if build.contract is None:
        return
    promised = {column.name.casefold(): column.type for column in build.contract}
    for name in promised:
        if name not in given:
            yield ContractViolation(name, f"its enforced contract has {name}")
    for name, family in given.items():
        if name not in promised:
            yield ContractViolation(name, f"its enforced contract does not have {name}")
        elif _is_other_kind(promised[name], family):
            wanted = promised[name]
            yield ContractViolation(name, f"its enforced contract has {name} as {wanted}")


def _is_other_kind(promised: str, family: str) -> bool:
    wanted = parse_type(promised).family
    unclear = ("unknown", "other")
    return wanted not in unclear and family not in unclear and wanted != family
