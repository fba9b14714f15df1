"""A verification as text and as Markdown: the prediction and the observation of each model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.model.changes import Outcome
from downriver.model.trust.verification import BuildState, Contradiction

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.model.trust.verification import (
        ColumnComparison,
        ColumnSummary,
        DatabaseVerification,
        ModelVerification,
        UnverifiedConsumer,
    )

_COLUMNS_SHOWN = 8
_CONSUMERS_SHOWN = 10
_NAMES_SHOWN = 4
_PREDICTED = {
    Outcome.FAILS: "fails",
    Outcome.MAY_FAIL: "may fail",
    Outcome.NOT_REBUILT: "is not rebuilt",
    Outcome.CHANGES: "changes",
    Outcome.DEPRECATED: "unchanged",
    Outcome.UNTOUCHED: "unchanged",
}
CONTRADICTIONS = {
    Contradiction.UNPREDICTED_FAILURE: "the failure was not predicted",
    Contradiction.UNPREDICTED_DIFFERENCE: "the difference was not predicted",
    Contradiction.UNCONFIRMED_FAILURE: "a failure was predicted, but the model builds",
}


def verification_lines(verification: DatabaseVerification) -> Iterator[str]:
    """Yield a verification as lines of text."""
    verified = [model for model in verification.models if model.unverified is None]
    count = f"{len(verified)} of {len(verification.models)} models"
    yield f"VERIFIED: {count}, in {verification.database}"
    rows = [(m.model, describe_prediction(m), describe_observation(m)) for m in verified]
    widths = [max((len(row[at]) for row in rows), default=0) for at in range(2)]
    for model, row in zip(verified, rows, strict=True):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        yield f"  {cells[0]}  predicted: {cells[1]}  observed: {row[2]}"
        for column in model.columns[:_COLUMNS_SHOWN]:
            yield f"      {describe_column(column)}"
        if len(model.columns) > _COLUMNS_SHOWN:
            yield f"      and {len(model.columns) - _COLUMNS_SHOWN} more columns; see --format json"
        for contradiction in model.contradictions:
            yield f"      CONTRADICTED: {CONTRADICTIONS[contradiction]}"
    if verification.upstream:
        models = _join(verification.upstream)
        yield f"  built from the base, because the database does not have them: {models}"
    unverified = list(unverified_lines(verification))
    if unverified:
        yield "NOT VERIFIED:"
        yield from (f"  {line}" for line in unverified)


def unverified_lines(verification: DatabaseVerification) -> Iterator[str]:
    """Yield what was not verified, each with its reason."""
    for model in verification.models:
        if model.unverified is not None:
            side = " before the change" if model.unverified.value == "base_fails" else ""
            reason = model.unverified.value.replace("_", " ")
            state = f"fails{side}" if side else f"not built ({reason})"
            yield f"{model.model}: {state}: {model.detail}"
    by_type: dict[str, list[UnverifiedConsumer]] = {}
    for consumer in verification.consumers:
        by_type.setdefault(consumer.asset_type, []).append(consumer)
    for asset_type, consumers in by_type.items():
        names = [consumer.name for consumer in consumers]
        more = len(names) - _CONSUMERS_SHOWN
        shown = names[:_CONSUMERS_SHOWN] + ([f"{more} more"] if more > 0 else [])
        yield f"{', '.join(shown)}: not a dbt model of this repository ({asset_type})"


def describe_prediction(model: ModelVerification) -> str:
    """Return what was predicted of a model."""
    prediction_text = _PREDICTED[model.predicted]
    prediction = model.prediction
    if prediction is None or model.predicted is not Outcome.CHANGES:
        return prediction_text
    if prediction.gone:
        return "is removed"
    parts = [_join(list(prediction.columns))] if prediction.columns else []
    parts += ["rows"] if prediction.rows else []
    parts += ["any column"] if prediction.unknown else []
    return f"{prediction_text} {', '.join(parts)}" if parts else prediction_text


def describe_observation(model: ModelVerification) -> str:
    """Return what the database shows of a model."""
    match model.head.state:
        case BuildState.FAILED:
            return f"fails: {model.head.error}"
        case BuildState.NOT_BUILT:
            return f"is not built: {model.head.error}"
        case BuildState.ABSENT:
            return "is removed"
    if model.base.state is BuildState.ABSENT:
        return f"is new, with {model.head.rows:,} rows"
    counts = f"{model.base.rows:,} → {model.head.rows:,} rows"
    if model.base.rows == model.head.rows:
        counts = f"{model.head.rows:,} rows"
    if model.rows is None:
        return f"{counts}, values not compared: {model.not_compared}"
    return f"{counts}, {_difference(model)}"


def _difference(model: ModelVerification) -> str:
    rows = model.rows
    if rows is None or not rows.differing:
        return "no value differs" if _has_other_columns(model) else "no difference"
    if not rows.key:
        return f"{rows.removed:,} rows only before, {rows.added:,} only after (no unique key)"
    counted = ((rows.changed, "differ"), (rows.added, "added"), (rows.removed, "removed"))
    parts = [f"{count:,} {word}" for count, word in counted if count]
    return f"{', '.join(parts)} (by {', '.join(rows.key)})"


def _has_other_columns(model: ModelVerification) -> bool:
    return any(
        column.base is None or column.head is None or column.base.type != column.head.type
        for column in model.columns
    )


def describe_column(column: ColumnComparison) -> str:
    """Return how a column differs: its type, the differing rows, and a summary of its values."""
    base, head = column.base, column.head
    if base is None and head is not None:
        text = f"{column.name}: added, {head.type}{_summary(head)}"
    elif head is None and base is not None:
        text = f"{column.name}: removed, was {base.type}"
    elif base is not None and head is not None:
        kind = base.type if base.type == head.type else f"{base.type} → {head.type}"
        differing = (
            "not compared"
            if column.differing is None
            else f"{column.differing:,} rows differ"
            if column.differing
            else "no value differs"
        )
        text = f"{column.name}: {kind}, {differing}{_both(base, head)}"
    else:
        text = column.name
    if column.unstable:
        return f"{text}; differs between two builds of the base"
    return text if column.predicted else f"{text}; not predicted"


def _summary(side: ColumnSummary) -> str:
    if side.nulls is None:
        return ""
    values = f", min {side.low}, max {side.high}" if side.low is not None else ""
    return f"{values}, {side.nulls:,} null"


def _both(base: ColumnSummary, head: ColumnSummary) -> str:
    if base.nulls is None or head.nulls is None:
        return ""
    parts = []
    if base.low is not None or head.low is not None:
        parts = [f"min {_arrow(base.low, head.low)}", f"max {_arrow(base.high, head.high)}"]
    parts.append(f"null {_arrow(f'{base.nulls:,}', f'{head.nulls:,}')}")
    return f", {', '.join(parts)}"


def _arrow(before: str | None, after: str | None) -> str:
    return f"{before}" if before == after else f"{before} → {after}"


def _join(names: list[str]) -> str:
    more = len(names) - _NAMES_SHOWN
    return ", ".join(names[:_NAMES_SHOWN] + ([f"{more} more"] if more > 0 else []))
