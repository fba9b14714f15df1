"""Changes as a migration states them: ALTER TABLE and DROP in any dialect sqlglot reads."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sqlglot import exp

from downriver.capture.sql.limits import Budget, SqlLimits
from downriver.capture.sql.script_parser import ScriptParser
from downriver.capture.sql.text.dialect import get_dialect
from downriver.errors import InvalidRequestError
from downriver.model.changes import (
    Change,
    ColumnAdd,
    ColumnDrop,
    ColumnRename,
    NullabilityChange,
    TableDrop,
    TableRename,
    TypeChange,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

# sqlglot reads PostgreSQL's `RENAME a TO b` as a rename of the table.
_BARE_RENAME = re.compile(
    r"(\brename\s+)(?!column\b|to\b|as\b|constraint\b|index\b|key\b)"
    r"(\"[^\"]+\"|`[^`]+`|\w+)(\s+to\b)",
    re.IGNORECASE,
)
_ORACLE_MODIFY = re.compile(
    r"\s*alter\s+table\s+(\S+)\s+modify\s*\(?\s*(\w+)\s+(\w+(?:\([\d, ]+\))?[\w ]*)\)?\s*;?\s*$",
    re.IGNORECASE,
)
_SP_RENAME = re.compile(
    r"\s*exec(?:ute)?\s+(?:sys\.)?sp_rename\s+(?:@\w+\s*=\s*)?N?'(?P<old>[^']+)'\s*,"
    r"\s*(?:@\w+\s*=\s*)?N?'(?P<new>[^']+)'(?:\s*,\s*(?:@\w+\s*=\s*)?N?'(?P<kind>\w+)')?",
    re.IGNORECASE,
)


def parse_ddl(sql: str, dialect: str | None = None) -> list[Change]:
    """Return the changes a migration makes; statements that change no schema are passed over."""
    text = _BARE_RENAME.sub(r"\1COLUMN \2\3", sql)
    found: list[Change] = []
    for parsed in ScriptParser(get_dialect(dialect or ""), Budget(SqlLimits())).read(text):
        changes = list(_read(parsed.tree)) or list(_read_text(parsed.sql))
        if not changes and _is_unread(parsed.tree, parsed.sql):
            first = parsed.sql.strip().splitlines()[0]
            raise InvalidRequestError("ddl", f"line {parsed.line}: cannot read {first!r}")
        found += changes
    if not found:
        raise InvalidRequestError("ddl", "no ALTER TABLE, DROP TABLE or DROP VIEW in it")
    return found


def _is_unread(tree: exp.Expression | None, sql: str) -> bool:
    """A migration that cannot be read is never a migration without effect."""
    if tree is None or isinstance(tree, exp.Command):
        return bool(
            re.match(r"\s*(alter|drop|rename|exec(ute)?\s+sp_rename)\b", sql, re.IGNORECASE)
        )
    return isinstance(tree, exp.Alter) and str(tree.args.get("kind")).upper() == "TABLE"


def _read(tree: exp.Expression | None) -> Iterator[Change]:
    match tree:
        case exp.Alter():
            yield from _read_alter(tree)
        case exp.Drop() if str(tree.args.get("kind")).upper() in ("TABLE", "VIEW"):
            for table in [tree.this, *(tree.args.get("tables") or ())]:
                if isinstance(table, exp.Table):
                    yield TableDrop(dataset=_table(table))


def _table(node: exp.Expression) -> str:
    return ".".join(str(part.name) for part in node.parts if part.name)


def _read_alter(tree: exp.Alter) -> Iterator[Change]:
    if not isinstance(tree.this, exp.Table):
        return
    dataset = _table(tree.this)
    for action in tree.args.get("actions") or ():
        yield from _read_action(dataset, action)


def _read_action(dataset: str, action: exp.Expression) -> Iterator[Change]:
    match action:
        case exp.RenameColumn():
            to = str(action.args["to"].name)
            yield ColumnRename(dataset=dataset, column=str(action.this.name), to=to)
        case exp.AlterRename():
            yield TableRename(dataset=dataset, to=_table(action.this))
        case exp.Drop() if str(action.args.get("kind")).upper() == "COLUMN":
            for column in [action.this, *(action.args.get("tables") or ())]:
                if isinstance(column, exp.Expression):
                    yield ColumnDrop(dataset=dataset, column=str(column.name))
        case exp.ColumnDef():
            yield _added(dataset, action)
        case exp.Schema():
            for part in action.expressions:
                if isinstance(part, exp.ColumnDef):
                    yield _added(dataset, part)
        case exp.AlterColumn():
            yield from _read_alter_column(dataset, action)
        case exp.ModifyColumn() if isinstance(action.this, exp.ColumnDef):
            yield from _read_modify(dataset, action)


def _added(dataset: str, column: exp.ColumnDef) -> ColumnAdd:
    kinds = [constraint.kind for constraint in column.args.get("constraints") or ()]
    not_null = any(
        isinstance(kind, exp.NotNullColumnConstraint) and not kind.args.get("allow_null")
        for kind in kinds
    )
    filled = any(
        isinstance(
            kind,
            (
                exp.DefaultColumnConstraint,
                exp.GeneratedAsIdentityColumnConstraint,
                exp.ComputedColumnConstraint,
                exp.AutoIncrementColumnConstraint,
            ),
        )
        for kind in kinds
    )
    return ColumnAdd(
        dataset=dataset,
        column=str(column.name),
        data_type=_type(column.args.get("kind")),
        required=not_null and not filled,
    )


def _type(node: object) -> str:
    return node.sql().lower() if isinstance(node, exp.Expression) else ""


def _read_alter_column(dataset: str, action: exp.AlterColumn) -> Iterator[Change]:
    column = str(action.this.name)
    rename = action.args.get("rename_to")
    if isinstance(rename, exp.Expression) and rename.name != column:
        yield ColumnRename(dataset=dataset, column=column, to=str(rename.name))
    if action.args.get("dtype") is not None:
        yield TypeChange(dataset=dataset, column=column, to=_type(action.args["dtype"]))
    nullable = action.args.get("allow_null")
    if nullable is not None:
        yield NullabilityChange(dataset=dataset, column=column, nullable=bool(nullable))


def _read_modify(dataset: str, action: exp.ModifyColumn) -> Iterator[Change]:
    definition = action.this
    old = action.args.get("rename_from")
    column = str(old.name) if isinstance(old, exp.Expression) else str(definition.name)
    if column != definition.name:
        yield ColumnRename(dataset=dataset, column=column, to=str(definition.name))
    if definition.args.get("kind") is not None:
        yield TypeChange(dataset=dataset, column=column, to=_type(definition.args["kind"]))
    if _added(dataset, definition).required:
        yield NullabilityChange(dataset=dataset, column=column, nullable=False)


def _read_text(sql: str) -> Iterator[Change]:
    """What sqlglot leaves as text: Oracle's MODIFY, and T-SQL's renames by a procedure."""
    renamed = _SP_RENAME.match(sql)
    modified = _ORACLE_MODIFY.match(sql)
    if renamed is not None:
        yield _sp_rename(renamed["old"], renamed["new"], renamed["kind"] or "")
    elif modified is not None:
        dataset, column, definition = modified.groups()
        kind = re.split(r"\s+not\s+null|\s+null", definition, flags=re.IGNORECASE)[0].strip()
        if kind:
            yield TypeChange(dataset=dataset, column=column, to=kind.lower())
        if re.search(r"not\s+null", definition, re.IGNORECASE):
            yield NullabilityChange(dataset=dataset, column=column, nullable=False)


def _sp_rename(old: str, new: str, kind: str) -> Change:
    if kind.upper() != "COLUMN":
        return TableRename(dataset=old, to=new)
    dataset, _, column = old.rpartition(".")
    return ColumnRename(dataset=dataset, column=column, to=new)
