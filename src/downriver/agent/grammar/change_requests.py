"""Parse a proposed change in plain English into the changes of a request.

Each pattern returns a change in its JSON form, without the dataset.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from downriver.agent.grammar.limits import check_lines

if TYPE_CHECKING:
    from collections.abc import Callable

ChangeJson = dict[str, Any]
_NAME = r"[`\"']?(?P<{}>[A-Za-z_][\w$]*(?:\.[\w$]+)*)[`\"']?"
_COLUMN = r"(?:column|field|attribute)"
_SQL_TYPE = (
    r"(?:(?:big|small|tiny)?int(?:eger)?\d*|decimal|numeric|number|float\d*|double|real|string|text|"
    r"(?:n?var)?char|bool(?:ean)?|date(?:time)?|timestamp(?:tz)?|time|json|binary|uuid)\b"
    r"(?:\s*\([\d,\s]+\))?"
)
UNNAMED = "new_column"


class ProposedChanges(NamedTuple):
    """The changes of a text; `note` states assumptions."""

    changes: list[ChangeJson]
    note: str = ""


def parse_change(
    text: str, entity: str = "", change_type: str = "", column: str = ""
) -> ProposedChanges | None:
    """Parse the changes that a text proposes for `entity`; None if there is none.

    `change_type` is used if the text matches no pattern. `column` is the column of the whole
    request, if there is one.
    """
    text = " ".join(text.split())
    check_lines(text, "description")
    for pattern in PATTERNS:
        changes = pattern(text, _short(entity))
        if changes is not None:
            return _about(changes, column)
    by_type = _by_type(change_type)
    return None if by_type is None else _about(by_type, column)


def _about(proposed: ProposedChanges, column: str) -> ProposedChanges:
    """Turn changes of a dataset into changes of one column."""
    if not column:
        return proposed
    return proposed._replace(changes=[_of_column(change, column) for change in proposed.changes])


def _of_column(change: ChangeJson, column: str) -> ChangeJson:
    match change:
        case {"type": "table_rename", "to": new}:
            return {"type": "column_rename", "from": column, "to": new}
        case {"type": "table_drop"}:
            return {"type": "column_drop", "column": column}
        case {"type": "deprecation"} if not change.get("column"):
            return {"type": "deprecation", "column": column}
        case {"type": "logic_change"}:
            return {"type": "logic_change", "columns": [column]}
        case _:
            return change


def _short(entity: str) -> str:
    return re.split(r"[:./]", entity.rstrip("/"))[-1].casefold()


def _search(pattern: str, text: str) -> re.Match[str] | None:
    return re.search(pattern, text, re.IGNORECASE)


def _is_own_name(name: str, entity: str) -> bool:
    """True if a name in the text is the changed dataset itself."""
    return _short(name) == entity or name.casefold() in ("it", "this", "that")


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def rename(text: str, entity: str) -> ProposedChanges | None:
    """Rename column customer_id to cust_id; rename the table to orders_v2; rename to cust_id."""
    match = _search(
        rf"renam\w*\s+(?:the\s+)?(?P<what>{_COLUMN}|table|dataset|view)?\s*(?:{_NAME.format('old')})?"
        rf"(?:\s+{_COLUMN})?(?:\s+(?:in|of|on)\s+\S+)?\s+(?:to|as|into)\s+{_NAME.format('new')}",
        text,
    ) or _search(
        rf"renam\w*(?P<what>)(?P<old>)\s+(?:to|as|into)\s+{_NAME.format('new')}",
        text,
    )
    if match is None:
        return None
    old, new = match["old"] or "", _last(match["new"])
    table = (match["what"] or "").lower() in ("table", "dataset", "view")
    if table or not old or _is_own_name(old, entity):
        return ProposedChanges([{"type": "table_rename", "to": new}])
    return ProposedChanges([{"type": "column_rename", "from": _last(old), "to": new}])


def add(text: str, _entity: str) -> ProposedChanges | None:
    """Add a required column region; adding a new nullable field called note."""
    match = _search(
        rf"\badd\w*\s+(?:an?\s+|the\s+)?(?:new\s+)?(?P<how>(?:[\w-]+\s+){{0,3}}?){_COLUMN}\b"
        rf"(?:\s+(?:called|named)?\s*(?!to\b|in\b|on\b|for\b|that\b|and\b|which\b){_NAME.format('new')})?",
        text,
    )
    if match is None:
        return None
    required = bool(_search(r"required|mandatory|not[\s-]null|non-null", match["how"] + text))
    change = {"type": "column_add", "column": match["new"] or UNNAMED, "required": required}
    note = "" if match["new"] else f"the new column has no name yet; {UNNAMED} is used"
    return ProposedChanges([change], note)


def drop(text: str, entity: str) -> ProposedChanges | None:
    """Drop column email; remove the email field; delete the table."""
    verb = r"\b(?:(?:drop|remov|delet|eliminat)\w*|get(?:ting)?\s+rid\s+of)\s+(?:the\s+|our\s+)?"
    if _search(r"\b(?:go|goes|went|gone|going)\s+away\b|\b(?:disappear|vanish)\w*", text):
        return ProposedChanges([{"type": "table_drop"}])
    if _search(rf"{verb}(?:whole\s+|entire\s+)?(?:table|dataset|view)\b", text):
        return ProposedChanges([{"type": "table_drop"}])
    match = _search(rf"{verb}{_COLUMN}\s+{_NAME.format('old')}", text) or _search(
        rf"{verb}{_NAME.format('old')}(?:\s+{_COLUMN})?", text
    )
    if match is None:
        return None
    if _is_own_name(match["old"], entity):
        return ProposedChanges([{"type": "table_drop"}])
    return ProposedChanges([{"type": "column_drop", "column": _last(match["old"])}])


def retype(text: str, entity: str) -> ProposedChanges | None:
    """Change the type of amount to BIGINT; convert amount from INT to DECIMAL(10,2)."""
    kind = r"[`\"']?(?P<to>[A-Za-z]\w*(?:\s*\([\d,\s]+\))?)[`\"']?"
    match = _search(
        rf"(?:type\s+of\s+(?:the\s+)?(?:{_COLUMN}\s+)?{_NAME.format('old')}"
        rf"|(?:convert|cast|widen|alter|narrow|chang)\w*\s+(?:the\s+)?(?:{_COLUMN}\s+)?"
        rf"{_NAME.format('old2')}(?:\s+{_COLUMN})?\s+from\s+\w+(?:\([\d,\s]+\))?)"
        rf"(?:\s+{_COLUMN})?(?:\s+from\s+\w+)?\s+(?:to|into)\s+(?:an?\s+)?{kind}",
        text,
    )
    match = match or _search(
        rf"\b(?:convert|cast|chang|alter|widen|narrow|mak)\w*\s+(?:the\s+)?(?:{_COLUMN}\s+)?"
        rf"{_NAME.format('old')}(?P<old2>)(?:\s+{_COLUMN})?(?:\s+(?:in|of|on)\s+\S+)?\s+(?:to|into|as)\s+"
        rf"(?:an?\s+)?(?P<to>{_SQL_TYPE})",
        text,
    )
    if match is None:
        return None
    column = _last(match["old"] or match["old2"])
    if _is_own_name(column, entity):
        return None
    return ProposedChanges([{"type": "type_change", "column": column, "to": match["to"]}])


def nullability(text: str, _entity: str) -> ProposedChanges | None:
    """Make email NOT NULL; make the email column nullable."""
    match = _search(
        rf"mak\w+\s+(?:the\s+)?(?:{_COLUMN}\s+)?{_NAME.format('old')}(?:\s+{_COLUMN})?\s+"
        r"(?P<how>not[\s-]null|non-null\w*|required|mandatory|nullable|optional)",
        text,
    )
    if match is None:
        return None
    nullable = match["how"].lower() in ("nullable", "optional")
    change = {"type": "nullability_change", "column": _last(match["old"]), "nullable": nullable}
    return ProposedChanges([change])


def deprecate(text: str, entity: str) -> ProposedChanges | None:
    """Deprecate raw_events_v1; decommission it; retire the legacy column."""
    verb = r"(?:deprecat|decommission|retir|sunset|phas\w+\s+out)\w*"
    if not _search(rf"\b{verb}", text):
        return None
    match = _search(rf"\b{verb}\s+(?:the\s+)?{_COLUMN}\s+{_NAME.format('old')}", text) or _search(
        rf"\b{verb}\s+(?:the\s+)?{_NAME.format('old')}\s+{_COLUMN}\b", text
    )
    if match and not _is_own_name(match["old"], entity):
        return ProposedChanges([{"type": "deprecation", "column": _last(match["old"])}])
    return ProposedChanges([{"type": "deprecation"}])


def logic(text: str, _entity: str) -> ProposedChanges | None:
    """Change the logic of revenue; change how it is calculated."""
    if _search(
        r"\bchang\w*\b.*\b(?:logic|calculation|definition|formula|computation)\b"
        r"|\bchang\w*\s+(?:how|the way)\b|\brecalculat\w*|\bredefin\w*",
        text,
    ):
        return ProposedChanges([{"type": "logic_change", "columns": []}])
    return None


def schema(text: str, _entity: str) -> ProposedChanges | None:
    """Change the schema of raw_transactions."""
    if _search(r"\bschema\b|\balter\w*\b|\brestructur\w*", text):
        return ProposedChanges([{"type": "schema_change"}])
    return None


PATTERNS: tuple[Callable[[str, str], ProposedChanges | None], ...] = (
    rename,
    add,
    nullability,
    retype,
    deprecate,
    drop,
    logic,
    schema,
)

_TYPES: dict[str, ChangeJson] = {
    "schema_change": {"type": "schema_change"},
    "deprecation": {"type": "deprecation"},
    "deletion": {"type": "table_drop"},
    "drop": {"type": "table_drop"},
    "table_drop": {"type": "table_drop"},
    "data_quality": {"type": "logic_change", "columns": []},
    "logic_change": {"type": "logic_change", "columns": []},
    "transformation_change": {"type": "logic_change", "columns": []},
}


def _by_type(change_type: str) -> ProposedChanges | None:
    """Return the widest change that a change type can mean."""
    change = _TYPES.get(change_type.strip().lower().replace(" ", "_").replace("-", "_"))
    return None if change is None else ProposedChanges([change])
