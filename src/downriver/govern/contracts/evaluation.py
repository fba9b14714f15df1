"""Checks the clauses of a contract against observations.

A clause is a function from a contract and observations to outcomes. A clause without an observation
is unknown, and not passed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from downriver.govern.drift.runs import parse_period
from downriver.govern.schemas import check_compatibility, compare_columns
from downriver.govern.schemas.compatibility import SchemaComparison
from downriver.model.trust.contracts import ClauseResult, DataContract, RowBounds
from downriver.model.trust.schemas import CompatibilityMode
from downriver.openlineage.wire import render_time

if TYPE_CHECKING:
    from downriver.govern.contracts.observations import DatasetObservations
    from downriver.model.facts import EventRef
    from downriver.model.trust.contracts import ClauseOutcome
    from downriver.model.trust.schemas import DeclaredColumn

ContractClause = Callable[["DataContract", "DatasetObservations"], Iterator[ClauseResult]]
_HOUR = 3_600_000_000
NO_SCHEMA = "schema unknown: no event contained a schema facet"


def check_columns(contract: DataContract, observed: DatasetObservations) -> Iterator[ClauseResult]:
    """Every column of the contract exists, with the type of the contract."""
    if contract.columns and not observed.schemas:
        yield ClauseResult(clause="columns", outcome="unknown", message=NO_SCHEMA)
        return
    for column in contract.columns:
        schema = observed.schemas[0]
        known = {found.name.casefold(): found for found in schema.columns}
        actual = known.get(column.name.casefold())
        event = _event(schema.event)
        if actual is None:
            yield ClauseResult(
                clause="column_exists", outcome="violated", column=column.name, event=event,
                message=f"the column {column.name} does not exist",
            )  # fmt: skip
            continue
        yield ClauseResult(
            clause="column_exists", outcome="passed", column=column.name, event=event,
            message=f"the column {column.name} exists",
        )  # fmt: skip
        if not column.type and column.logical_type is None:
            continue
        change = compare_columns(column, actual)
        outcome: ClauseOutcome = "violated"
        message = f"{column.name} is {actual.shown_type}, not {column.shown_type}"
        if change is None:
            outcome, message = "unknown", f"the type of {column.name} is unknown"
        elif change == "same":
            outcome, message = "passed", f"{column.name} is {column.shown_type}"
        yield ClauseResult(
            clause="column_type", outcome=outcome, column=column.name, message=message,
            expected=column.shown_type, actual=actual.type or None, event=event,
        )  # fmt: skip


def check_closed(contract: DataContract, observed: DatasetObservations) -> Iterator[ClauseResult]:
    """A closed contract lists every column."""
    if not contract.closed or not observed.schemas:
        return  # without a schema, `columns` is unknown already
    stated = {column.name.casefold() for column in contract.columns}
    others = [c.name for c in observed.schemas[0].columns if c.name.casefold() not in stated]
    yield ClauseResult(
        clause="closed",
        outcome="violated" if others else "passed",
        message=f"columns that are not in the contract: {', '.join(others)}"
        if others
        else "no other columns",
        actual=", ".join(others) or None,
        event=_event(observed.schemas[0].event),
    )


def check_schema_change(
    contract: DataContract, observed: DatasetObservations
) -> Iterator[ClauseResult]:
    """The current schema is compatible with the one before it."""
    mode = contract.compatibility
    if mode is None or not observed.schemas:
        return
    incompatibilities = []
    if len(observed.schemas) > 1:
        now, before = observed.schemas
        incompatibilities = check_compatibility(SchemaComparison(before.columns, now.columns), mode)
    yield ClauseResult(
        clause="compatibility",
        outcome="violated" if incompatibilities else "passed",
        message="; ".join(f"{each.column}: {each.message}" for each in incompatibilities)
        or f"the last schema change is {mode.value} compatible",
        expected=mode.value,
        event=_event(observed.schemas[0].event),
    )


def check_required(contract: DataContract, observed: DatasetObservations) -> Iterator[ClauseResult]:
    """A required column has no nulls."""
    for column in contract.columns:
        if not column.required:
            continue
        nulls = observed.nulls.get(column.name.casefold())
        if nulls is None:
            yield ClauseResult(
                clause="required", outcome="unknown", column=column.name,
                message=f"nulls of {column.name} unknown: no event counted them",
            )  # fmt: skip
            continue
        yield ClauseResult(
            clause="required",
            outcome="violated" if nulls.value else "passed",
            column=column.name,
            message=f"{nulls.value:,.0f} nulls in {column.name}",
            expected="0 nulls",
            actual=f"{nulls.value:,.0f} nulls",
            event=_event(nulls.event),
        )


def check_rows(contract: DataContract, observed: DatasetObservations) -> Iterator[ClauseResult]:
    """The number of rows is within the bounds."""
    bounds = contract.rows
    if bounds is None or (bounds.min is None and bounds.max is None):
        return
    if observed.rows is None:
        yield ClauseResult(
            clause="rows", outcome="unknown",
            message="row count unknown: no event contained statistics of a write",
        )  # fmt: skip
        return
    rows = observed.rows.value
    low, high = bounds.min, bounds.max
    outside = (low is not None and rows < low) or (high is not None and rows > high)
    limits = [f"at least {low:,.0f}"] if low is not None else []
    limits += [f"at most {high:,.0f}"] if high is not None else []
    yield ClauseResult(
        clause="rows",
        outcome="violated" if outside else "passed",
        message=f"{rows:,.0f} rows",
        expected=" and ".join(limits),
        actual=f"{rows:,.0f}",
        event=_event(observed.rows.event),
    )


def check_freshness(
    contract: DataContract, observed: DatasetObservations
) -> Iterator[ClauseResult]:
    """The last completed write is recent enough."""
    period = None if contract.freshness is None else parse_period(contract.freshness)
    if period is None:
        return
    if observed.written_at is None:
        yield ClauseResult(
            clause="freshness", outcome="unknown", expected=contract.freshness,
            message="last write unknown: no completed run writes the dataset",
        )  # fmt: skip
        return
    age = observed.at - observed.written_at
    yield ClauseResult(
        clause="freshness",
        outcome="violated" if age > period else "passed",
        message=f"last written {age / _HOUR:,.1f} h ago, at {render_time(observed.written_at)}",
        expected=contract.freshness,
        actual=f"{age / _HOUR:,.1f}h",
    )


def list_not_checked(
    contract: DataContract, _observed: DatasetObservations
) -> Iterator[ClauseResult]:
    """A statement in the file that no rule checks has the outcome unknown."""
    for statement in contract.not_checked:
        yield ClauseResult(
            clause="not_checked", outcome="unknown", message=f"{statement} is not checked"
        )


SCHEMA_CLAUSES: tuple[ContractClause, ...] = (check_columns, check_closed, check_schema_change)
CLAUSES: tuple[ContractClause, ...] = (
    *SCHEMA_CLAUSES,
    check_required,
    check_rows,
    check_freshness,
    list_not_checked,
)


def check_contract(contract: DataContract, observed: DatasetObservations) -> list[ClauseResult]:
    """Return the outcome of every clause."""
    return [result for clause in CLAUSES for result in clause(contract, observed)]


def summarize(clauses: list[ClauseResult]) -> ClauseOutcome:
    """Return the outcome of a contract: the worst of its clauses."""
    outcomes = {clause.outcome for clause in clauses}
    if "violated" in outcomes:
        return "violated"
    return "unknown" if "unknown" in outcomes or not clauses else "passed"


def list_differences(old: DataContract | None, new: DataContract) -> list[str]:
    """Return what a new contract changes, in plain words."""
    if old is None:
        return [f"new contract with {len(new.columns)} columns"]
    before, after = ({c.name: c for c in contract.columns} for contract in (old, new))
    differences = [f"+ column {_words(after[name])}" for name in after if name not in before]
    differences += [f"- column {_words(before[name])}" for name in before if name not in after]
    differences += [
        f"~ column {_words(before[name])} -> {_words(after[name])}"
        for name in after
        if name in before and before[name] != after[name]
    ]
    for field in old.__struct_fields__:
        one, other = getattr(old, field), getattr(new, field)
        if field not in ("columns", "dataset") and one != other:
            differences.append(f"~ {field.replace('_', ' ')}: {_shown(one)} -> {_shown(other)}")
    if not differences and old != new:
        differences.append("~ order of the columns")
    return differences


def _words(column: DeclaredColumn) -> str:
    return f"{column.name} {column.shown_type}{' required' if column.required else ''}"


def _shown(value: object) -> str:
    match value:
        case None | "" | []:
            return "none"
        case RowBounds(min=low, max=high):
            return f"{_number(low)} to {_number(high)} rows"
        case CompatibilityMode():
            return value.value
        case list():
            return ", ".join(str(each) for each in value)
        case _:
            return str(value)


def _number(value: float | None) -> str:
    return "any" if value is None else f"{value:,.0f}"


def _event(event: EventRef) -> str:
    return event.digest.hex()
