"""Values that a driver collected from Spark, and that may return in a later query."""

from __future__ import annotations

import threading
from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from downriver.capture.spark.driver.user_code import contains_together, value_text
from downriver.columns import NOTHING, Certainty, DependencyKind, Deps, direct, merge_all, weaken

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from downriver.capture.frame_origins import Origins
    from downriver.capture.spark.plan.tree import PlanNode

_MOST_ROWS = 10_000
_MOST_COLUMNS = 50
_REMEMBERED = 256
_COMMON = frozenset({"0.0", "1.0", "-1.0", ""})  # values that are common in code
_FEW = 100  # whole numbers up to here are common in code


class _Collected(NamedTuple):
    """The values of the columns of one result."""

    columns: dict[str, frozenset[str]]
    is_one_row: bool
    origins: Callable[[], Origins]


class CollectedValues:
    """The values of the latest results of an application, with the columns that they are from."""

    def __init__(self) -> None:
        self._latest: deque[_Collected] = deque(maxlen=_REMEMBERED)
        self._lock = threading.Lock()

    def add(
        self,
        names: Sequence[str],
        rows: Sequence[Sequence[Any]],
        origins: Callable[[], Origins],
    ) -> None:
        """Store the values of a result. `origins` is called if a value occurs in a later query."""
        columns: dict[str, frozenset[str]] = {}
        for at, name in enumerate(names[:_MOST_COLUMNS]):
            texts = {value_text(row[at]) for row in islice(rows, _MOST_ROWS)}
            columns[name] = frozenset(text for text in texts if text and text not in _COMMON)
        if any(columns.values()):
            values = _Collected(columns, len(rows) == 1, origins)
            with self._lock:
                self._latest.append(values)

    def origins_of(self, literals: Sequence[PlanNode]) -> Deps:
        """Return possible origins of literals that stand together; empty if the code has them."""
        if not self._latest:
            return NOTHING
        texts = {value_text(literal.fields.get("value")) for literal in literals}
        values = {text for text in texts if text and text not in _COMMON}
        if not values:
            return NOTHING
        with self._lock:
            latest = list(self._latest)
        for result in reversed(latest):
            names = [name for name, known in result.columns.items() if values <= known]
            is_distinctive = len(texts) > 1 or result.is_one_row or all(map(_is_rare, values))
            if names and is_distinctive and not contains_together(values):
                return _ambiguous(result.origins(), names)
        return NOTHING

    def rows_from(self, rows: Sequence[Sequence[Any]]) -> Callable[[], Origins] | None:
        """Return a function for the origins of the result with these rows; None if none has."""
        first = [row for row in islice(rows, _MOST_ROWS) if isinstance(row, tuple)]
        width = min((len(row) for row in first), default=0)
        columns = [{text for row in first if (text := value_text(row[at]))} for at in range(width)]
        with self._lock:
            latest = list(self._latest)
        for result in reversed(latest):
            known = list(result.columns.values())
            if any(
                values and values - _COMMON and values <= other | _COMMON
                for values in columns
                for other in known
            ):
                return result.origins
        return None


def _is_rare(value: str) -> bool:
    """Return whether a value is so rare that an equal value is hardly a coincidence."""
    try:
        number = float(value)
    except ValueError:
        return len(value) > 1
    return abs(number) > _FEW or number != int(number)


def _ambiguous(origins: Origins, names: Sequence[str]) -> Deps:
    deps = merge_all(origins.get(name, NOTHING) for name in names)
    return weaken(direct(deps, DependencyKind.TRANSFORMATION), Certainty.AMBIGUOUS)
