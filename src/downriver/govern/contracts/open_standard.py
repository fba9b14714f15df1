"""The Open Data Contract Standard (ODCS) v3: one contract for each object of its schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from downriver.errors import InvalidRequestError
from downriver.model.trust.contracts import DataContract, RowBounds
from downriver.model.trust.schemas import DeclaredColumn, LogicalType

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOGICAL_TYPES: dict[str, LogicalType] = {
    "string": "string",
    "integer": "integer",
    "number": "number",
    "boolean": "boolean",
    "date": "date",
    "timestamp": "timestamp",
    "time": "time",
    "object": "object",
    "array": "array",
}
_FRESHNESS = frozenset({"freshness", "latency"})
_UNITS = {
    unit: short
    for short, units in {
        "y": "y yr year years",
        "w": "w week weeks",
        "d": "d day days",
        "h": "h hr hour hours",
        "m": "m min minute minutes",
        "s": "s sec second seconds",
    }.items()
    for unit in units.split()
}
_DAYS_OF_YEAR = 365
_ROW_COUNT = "rowcount"


class _Property(msgspec.Struct, rename="camel"):
    name: str
    logical_type: str | None = None
    physical_type: str | None = None
    physical_name: str | None = None
    required: bool = False
    description: str | None = None
    properties: list[_Property] | None = None
    items: dict[str, Any] | None = None
    quality: list[dict[str, Any]] | None = None
    unique: bool = False


class _Object(msgspec.Struct, rename="camel"):
    name: str
    physical_name: str | None = None
    properties: list[_Property] | None = None
    quality: list[dict[str, Any]] | None = None


class _ServiceLevel(msgspec.Struct, rename="camel"):
    property: str
    value: Any = None
    unit: str | None = None
    element: str | None = None


class _Standard(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    version: str = ""
    schema: list[_Object] | None = None
    sla_properties: list[_ServiceLevel] | None = None
    team: Any = None
    description: Any = None


def is_open_standard(content: Any) -> bool:
    """Return whether a document is one of the standard."""
    return isinstance(content, dict) and content.get("kind") == "DataContract"


def parse_open_standard(content: Any, place: str) -> list[DataContract]:
    """Return a contract for each object of a document.

    Parts that no rule checks, such as other quality rules, are listed in `not_checked`.
    """
    try:
        found = msgspec.convert(content, _Standard)
    except msgspec.ValidationError as exc:
        raise InvalidRequestError(place, str(exc)) from exc
    if not found.api_version.lstrip("v").startswith("3."):
        raise InvalidRequestError(place, f"apiVersion: {found.api_version} is not v3")
    if not found.schema:
        raise InvalidRequestError(place, "schema: lists no object")
    return [_contract(found, each, place) for each in found.schema]


def _contract(standard: _Standard, each: _Object, place: str) -> DataContract:
    not_checked: list[str] = []
    rows = _row_bounds(each, not_checked, place)
    freshness = _freshness(standard, each, not_checked, place)
    columns = list(_columns(each.properties or [], "", not_checked))
    return DataContract(
        dataset=each.physical_name or each.name,
        owner=_owner(standard.team),
        description=_description(standard.description),
        version=standard.version,
        columns=columns,
        freshness=freshness,
        rows=rows,
        not_checked=not_checked,
    )


def _columns(
    properties: list[_Property], prefix: str, not_checked: list[str]
) -> Iterator[DeclaredColumn]:
    for each in properties:
        path = prefix + (each.physical_name or each.name)
        yield DeclaredColumn(
            name=path,
            type=each.physical_type or "",
            logical_type=_LOGICAL_TYPES.get((each.logical_type or "").casefold()),
            required=each.required,
            description=each.description or "",
        )
        not_checked += [f"{_rule(rule)} of {path}" for rule in each.quality or ()]
        if each.unique:
            not_checked.append(f"unique of {path}")
        nested = each.properties
        if nested is None and isinstance(each.items, dict):
            nested = msgspec.convert(each.items.get("properties") or [], list[_Property])
        yield from _columns(nested or [], f"{path}.", not_checked)


def _owner(team: Any) -> str:
    """Return the owner: a team has a name (v3.1), or it is a list of members (v3.0)."""
    if isinstance(team, dict):
        return str(team.get("name") or "") or _owner(team.get("members"))
    members = [each for each in team or () if isinstance(each, dict)]
    current = [each for each in members if not each.get("dateOut")]
    owners = [each for each in current if "owner" in str(each.get("role", "")).casefold()]
    return next((str(each.get("username", "")) for each in owners or current), "")


def _description(text: Any) -> str:
    return str(text.get("purpose") or "") if isinstance(text, dict) else str(text or "")


def _freshness(
    standard: _Standard, each: _Object, not_checked: list[str], place: str
) -> str | None:
    freshness = None
    for level in standard.sla_properties or ():
        if not _is_about(level, each):
            continue
        if level.property.casefold() in _FRESHNESS:
            freshness = _period(level, place)
        else:
            not_checked.append(f"service level {level.property}")
    return freshness


def _is_about(level: _ServiceLevel, each: _Object) -> bool:
    """Return whether a rule is about an object.

    Its element is `object` or `object.property`; without an element, it is about all objects.
    """
    elements = [part.strip() for part in (level.element or "").split(",") if part.strip()]
    names = {each.name, each.physical_name}
    return not elements or any(
        part in names or part.rpartition(".")[0] in names for part in elements
    )


def _period(level: _ServiceLevel, place: str) -> str:
    unit = (level.unit or "d").casefold()
    known = _UNITS.get(unit)
    try:
        value = float(level.value)
    except (TypeError, ValueError) as exc:
        raise InvalidRequestError(
            place, f"{level.property}: {level.value!r} is not a number"
        ) from exc
    if known is None or value <= 0:
        raise InvalidRequestError(place, f"{level.property}: {level.value} {unit} is not a period")
    if known == "y":
        value, known = value * _DAYS_OF_YEAR, "d"
    return f"{value:.3f}".rstrip("0").rstrip(".") + known


def _rule(rule: dict[str, Any]) -> str:
    name = rule.get("metric") or rule.get("rule") or rule.get("name") or rule.get("type")
    return f"quality rule {name or 'without a name'}"


def _row_bounds(each: _Object, not_checked: list[str], place: str) -> RowBounds | None:
    least: list[float] = []
    most: list[float] = []
    for rule in each.quality or ():
        name = str(rule.get("metric") or rule.get("rule") or "").casefold()
        bounds = _bounds(rule, place) if name == _ROW_COUNT else None
        if bounds is None or rule.get("unit") not in (None, "rows"):
            not_checked.append(f"{_rule(rule)} of {each.name}")
            continue
        least += [] if bounds.min is None else [bounds.min]
        most += [] if bounds.max is None else [bounds.max]
    if not least and not most:
        return None
    return RowBounds(min=max(least, default=None), max=min(most, default=None))


def _bounds(rule: dict[str, Any], place: str) -> RowBounds | None:
    """Return the bounds of a rule; numbers of rows are whole, so `more than 10` is 11."""
    least: float | None = None
    most: float | None = None
    for name, value in rule.items():
        match name, value:
            case "mustBe", int() | float():
                least = most = value
            case "mustBeGreaterThan", int() | float():
                least = value + 1
            case "mustBeGreaterOrEqualTo", int() | float():
                least = value
            case "mustBeLessThan", int() | float():
                most = value - 1
            case "mustBeLessOrEqualTo", int() | float():
                most = value
            case "mustBeBetween", [int() | float() as low, int() | float() as high]:
                least, most = low, high
            case (("mustNotBe" | "mustNotBeBetween"), _):
                return None
            case str(), _ if name.startswith("mustBe"):
                raise InvalidRequestError(place, f"quality: {name}: {value!r} is not a number")
    return None if least is None and most is None else RowBounds(min=least, max=most)
