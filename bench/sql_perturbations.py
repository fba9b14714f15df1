"""Changes of one column of a generated table, for the SQL oracle."""

from __future__ import annotations

import datetime as dt
import json
import random
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# No generator makes the changed values, so that they are recognizable in the output.
NEW_NUMBER = 700_000
NEW_YEAR = 2_101


class Perturbation(msgspec.Struct):
    """The changed values of one column. `made` are values that no row had before."""

    kind: str
    values: list[Any]
    made: list[Any] = []


# Changes of a column. Each function takes the values and returns the same number of values.


def _another(random_: random.Random, values: Sequence[Any], old: Any) -> Any:
    others = [value for value in values if value != old]
    return random_.choice(others) if others else old


def _few(random_: random.Random, values: Sequence[Any], share: float) -> list[int]:
    return random_.sample(range(len(values)), max(1, int(len(values) * share)))


def one(random_: random.Random, values: list[Any], type_: str) -> Perturbation:
    """One row takes another row's value."""
    at = random_.randrange(len(values))
    changed = list(values)
    changed[at] = _another(random_, values, values[at])
    return Perturbation("one", changed)


def some(random_: random.Random, values: list[Any], type_: str) -> Perturbation:
    """Some rows take other rows' values."""
    changed = list(values)
    for at in _few(random_, values, 0.3):
        changed[at] = _another(random_, values, values[at])
    return Perturbation("some", changed)


def shuffle(random_: random.Random, values: list[Any], type_: str) -> Perturbation:
    """The same values, in other rows."""
    return Perturbation("shuffle", random_.sample(values, len(values)))


def one_null(random_: random.Random, values: list[Any], type_: str) -> Perturbation:
    """One row loses its value."""
    changed = list(values)
    changed[random_.randrange(len(values))] = None
    return Perturbation("one_null", changed)


def nulls(random_: random.Random, values: list[Any], type_: str) -> Perturbation:
    """Some rows lose their values."""
    changed = list(values)
    for at in _few(random_, values, 0.3):
        changed[at] = None
    return Perturbation("nulls", changed)


def no_values(random_: random.Random, values: list[Any], type_: str) -> Perturbation:
    """Every row loses its value."""
    return Perturbation("no_values", [None] * len(values))


def one_new(random_: random.Random, values: list[Any], type_: str) -> Perturbation:
    """One row takes a value that no row had."""
    changed = list(values)
    made = new_value(type_, random_.randrange(1, 99))
    changed[random_.randrange(len(values))] = made
    return Perturbation("one_new", changed, [made])


def new(random_: random.Random, values: list[Any], type_: str) -> Perturbation:
    """Some rows take values that no row had."""
    changed = list(values)
    made = []
    for at in _few(random_, values, 0.4):
        made.append(new_value(type_, random_.randrange(100, 999)))
        changed[at] = made[-1]
    return Perturbation("new", changed, made)


def all_new(random_: random.Random, values: list[Any], type_: str) -> Perturbation:
    """Every row takes a value of its own."""
    made = [new_value(type_, 1000 + at) for at in range(len(values))]
    return Perturbation("all_new", made, made)


def same(random_: random.Random, values: list[Any], type_: str) -> Perturbation:
    """Every row takes the value of one."""
    known = [value for value in values if value is not None] or [None]
    return Perturbation("same", [random_.choice(known)] * len(values))


def merged(random_: random.Random, values: list[Any], type_: str) -> Perturbation:
    """All rows with one value take another value, so that two values become one."""
    old = random_.choice(values)
    other = _another(random_, values, old)
    return Perturbation("merged", [other if value == old else value for value in values])


def nudged(random_: random.Random, values: list[Any], type_: str) -> Perturbation:
    """One row's value moves a little."""
    changed = list(values)
    at = random_.randrange(len(values))
    changed[at] = _nudge(values[at], type_, random_.choice((-1, 1, 2)))
    return Perturbation("nudged", changed)


def low(random_: random.Random, values: list[Any], type_: str) -> Perturbation:
    """Some rows take values below all others."""
    changed = list(values)
    for at in _few(random_, values, 0.3):
        changed[at] = _nudge(values[at], type_, -random_.randrange(300, 3000))
    return Perturbation("low", changed)


KINDS: tuple[Callable[[random.Random, list[Any], str], Perturbation], ...] = (
    some, new, shuffle, nulls, same, one, merged, low, all_new, one_new, one_null, nudged,
    no_values,
)  # fmt: skip


def new_value(type_: str, n: int) -> Any:
    """Return the n-th value that no row has."""
    if type_ == "INTEGER":
        return NEW_NUMBER + n
    if type_.startswith("DECIMAL"):
        return Decimal(NEW_NUMBER * 100 + n * 101) / 100
    if type_ == "DATE":
        return dt.date(NEW_YEAR, 1, 1) + dt.timedelta(days=n)
    if type_ == "TIMESTAMP":
        return dt.datetime(NEW_YEAR, 1, 1) + dt.timedelta(hours=n)
    if type_ == "VARCHAR":
        return f"Zq{n}"
    if type_ == "VARCHAR[]":
        return [f"Zq{n}", f"Zr{n}"]
    if type_ == "INTEGER[]":
        return [NEW_NUMBER + n, NEW_NUMBER - n]
    if type_.startswith("STRUCT"):
        return {"width": NEW_NUMBER + n, "height": NEW_NUMBER - n}
    if type_ == "JSON":
        return json.dumps(
            {"color": f"Zq{n}", "weight": NEW_NUMBER + n, "parts": [{"code": f"Zr{n}"}]}
        )
    raise NotImplementedError(type_)


def _nudge(value: Any, type_: str, by: int) -> Any:
    if value is None:
        return new_value(type_, abs(by))
    if isinstance(value, (int, Decimal)):
        return value + by
    if isinstance(value, (dt.date, dt.datetime)):
        return value + dt.timedelta(days=by)
    if type_ == "VARCHAR":
        return f"{'!' if by < 0 else ''}{value}{'~' if by > 0 else ''}"
    return new_value(type_, abs(by))


# The shop
