"""The effect of one DDL statement on tables: the changes it makes, or that it is unknown."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from sqlglot import exp

from downriver.model.changes import (
    Change,
    ColumnAdd,
    ColumnDrop,
    ColumnRename,
    LogicChange,
    NullabilityChange,
    SchemaChange,
    TableDrop,
    TableRename,
    TypeChange,
)
from downriver.model.unread import UnreadReason

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.capture.sql.text.parse import ScriptStatement

_STRINGS_AND_COMMENTS = re.compile(r"--[^\n]*|/\*(?:(?!/\*).)*?\*/|'(?:[^']|'')*'", re.DOTALL)
DDL_WORDS = re.compile(
    r"\b(?:alter|drop|rename|truncate|undrop|create\s+or\s+replace)\s+"
    r"(?:(?:external|foreign|iceberg|dynamic|materialized|temporary|temp|transient)\s+)?"
    r"(?:table|view|column|columns|schema|database|partition|synonym)\b",
    re.IGNORECASE,
)


def mentions_ddl(text: str) -> bool:
    """Return whether a text in any language contains words that alter tables."""
    return DDL_WORDS.search(text) is not None


def strip_strings(sql: str) -> str:
    """Return a statement without its strings and comments."""
    return _STRINGS_AND_COMMENTS.sub(" ", sql)


class DdlEffect(NamedTuple):
    """The effect of a statement on tables. It is `known` only if the whole effect is known.

    `made` are tables that the statement creates, or `replaces`; `columns` are those it lists for
    the table.
    """

    known: bool
    changes: tuple[Change, ...] = ()
    made: tuple[str, ...] = ()
    replaces: bool = False
    columns: tuple[ColumnAdd, ...] = ()
    reason: UnreadReason = UnreadReason.SQL_STATEMENT

    @classmethod
    def of(cls, parsed: ScriptStatement) -> DdlEffect:
        """Return the effect of a parsed statement."""
        by_text = tuple(read_vendor_text(parsed.sql))
        if by_text:
            return cls(True, by_text)
        if parsed.tree is None:
            return _effect_without_tree(parsed)
        return _effect_of_tree(parsed.tree)


def _effect_without_tree(parsed: ScriptStatement) -> DdlEffect:
    """Classify a statement by its keywords: harmless ones are listed, all others are unread."""
    effect = parsed.effect
    if effect is not None and effect.lifecycle is not None:
        return DdlEffect(bool(effect.written), tuple(_lifecycle_changes(parsed)))
    if effect is not None or parsed.trigger is not None:
        return DdlEffect(True)
    words = [word.upper() for word in re.findall(r"\w+", parsed.sql)[:3]]
    if words[:1] and words[0] in ("CREATE", "ALTER", "DROP"):
        kind = words[3 if words[1:3] == ["OR", "REPLACE"] else 1 : 4]
        return DdlEffect(bool(kind) and kind[0] in _WITHOUT_ROWS)
    return DdlEffect(not mentions_ddl(strip_strings(parsed.sql)))


def _lifecycle_changes(parsed: ScriptStatement) -> Iterator[Change]:
    effect = parsed.effect
    if effect is None:
        return
    for written in effect.written:
        name = ".".join(written.table)
        sources = [".".join(item.table) for item in written.columns if hasattr(item, "table")]
        match effect.lifecycle:
            case "RENAME":
                yield from (TableRename(dataset=source, to=name) for source in sources)
            case "DROP":
                yield TableDrop(dataset=name)
            case _:
                yield SchemaChange(dataset=name)


# Objects that hold no rows: creating, altering or dropping them alters no table.
_WITHOUT_ROWS = frozenset(
    {
        "INDEX", "UNIQUE", "ROLE", "USER", "LOGIN", "GROUP", "WAREHOUSE", "STAGE", "SEQUENCE",
        "FUNCTION", "PROCEDURE", "PROC", "AGGREGATE", "TRIGGER", "TYPE", "DOMAIN", "EXTENSION",
        "POLICY", "PIPE", "TASK", "STREAM", "FILE", "INTEGRATION", "STORAGE", "SECURITY", "TAG",
        "MASKING", "NETWORK", "RESOURCE", "ALERT", "SECRET", "CONNECTION", "SERVER", "CREDENTIAL",
        "CERTIFICATE", "COLLATION", "OPERATOR", "CAST", "PUBLICATION", "SUBSCRIPTION", "SESSION",
        "STATISTICS", "DEFAULT", "SYSTEM", "SHARE", "EVENT", "LANGUAGE", "TABLESPACE", "CONSTRAINT",
        "PARTITION", "QUEUE", "CATALOG", "VOLUME", "MACRO", "KEY", "SYMMETRIC", "ASSEMBLY",
    }
)  # fmt: skip
_WITHOUT_CHANGE = (
    exp.Query, exp.Insert, exp.Update, exp.Delete, exp.Merge, exp.Copy, exp.LoadData, exp.Grant,
    exp.Comment, exp.Set, exp.Use, exp.Transaction, exp.Commit, exp.Rollback, exp.Pragma,
    exp.Analyze, exp.Describe, exp.Declare, exp.Show, exp.Kill, exp.Cache, exp.Uncache,
    exp.Refresh, exp.Attach, exp.Detach, exp.Summarize, exp.Semicolon, exp.Export,
)  # fmt: skip
# Functions of PostgreSQL that migrations call with SELECT and that alter no table.
_HARMLESS_FUNCTIONS = re.compile(
    r"(?:setval|nextval|currval|lastval|set_config|current_setting|pg_\w+|now|version|format|concat"
    r"|current_\w+|to_\w+|coalesce|row_number|md5|uuid\w*|gen_random_uuid|json\w*|array\w*)\Z",
    re.IGNORECASE,
)


def _effect_of_tree(tree: exp.Expression) -> DdlEffect:
    match tree:
        case exp.Alter():
            return _effect_of_alter(tree)
        case exp.Drop():
            return _effect_of_drop(tree)
        case exp.Create():
            return _effect_of_create(tree)
        case exp.TruncateTable():
            tables = [table for table in tree.expressions if isinstance(table, exp.Table)]
            return DdlEffect(True, tuple(LogicChange(dataset=_table(table)) for table in tables))
        case exp.Select() if tree.args.get("from_") is None:
            return _effect_of_calls(tree)
        case exp.Select() if tree.args.get("into") is not None:
            return DdlEffect(True, (), (_table(tree.args["into"].this),))
        case exp.Query() if any(mentions_ddl(s.this) for s in tree.find_all(exp.Literal)):
            return DdlEffect(False, reason=UnreadReason.DYNAMIC_SQL)
        case _ if isinstance(tree, _WITHOUT_CHANGE):
            return DdlEffect(True)
        case _:
            return DdlEffect(False)


def _effect_of_calls(select: exp.Select) -> DdlEffect:
    """Return the effect of the functions that a SELECT calls: they may alter tables."""
    names = [str(call.name) for call in select.find_all(exp.Anonymous)]
    if all(_HARMLESS_FUNCTIONS.match(name) for name in names):
        return DdlEffect(True)
    return DdlEffect(False, reason=UnreadReason.PROCEDURE_CALL)


def _effect_of_drop(tree: exp.Drop) -> DdlEffect:
    kind = str(tree.args.get("kind")).upper()
    if kind in ("TABLE", "VIEW"):
        tables = [tree.this, *(tree.args.get("tables") or ())]
        named = [_table(table) for table in tables if isinstance(table, exp.Table)]
        return DdlEffect(bool(named), tuple(TableDrop(dataset=name) for name in named))
    return DdlEffect(kind in _WITHOUT_ROWS)


def _effect_of_create(tree: exp.Create) -> DdlEffect:
    """Return the effect of CREATE: a new table affects nothing, a replaced one may lose columns."""
    kind = str(tree.args.get("kind")).upper()
    if kind not in ("TABLE", "VIEW"):
        return DdlEffect(kind in _WITHOUT_ROWS or kind == "SCHEMA")
    target = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
    if not isinstance(target, exp.Table):
        return DdlEffect(False)
    name, listed = _table(target), []
    if isinstance(tree.this, exp.Schema) and not isinstance(tree.expression, exp.Query):
        listed = [part for part in tree.this.expressions if isinstance(part, exp.ColumnDef)]
    columns = tuple(_column_add(name, column) for column in listed)
    return DdlEffect(True, (), (name,), bool(tree.args.get("replace")), columns)


def _table(node: exp.Expression) -> str:
    return ".".join(str(part.name) for part in node.parts if part.name)


def _effect_of_alter(tree: exp.Alter) -> DdlEffect:
    kind = str(tree.args.get("kind")).upper()
    if kind not in ("TABLE", "VIEW", "MATERIALIZED VIEW"):
        return DdlEffect(kind in _WITHOUT_ROWS)
    if not isinstance(tree.this, exp.Table) or not tree.args.get("actions"):
        return DdlEffect(False)
    dataset = _table(tree.this)
    changes: list[Change] = []
    for action in tree.args["actions"]:
        found = _read_action(dataset, action)
        if found is None:
            return DdlEffect(False)
        changes += found
    return DdlEffect(True, tuple(changes))


# Actions of ALTER TABLE that do not change columns, their types or their names.
_HARMLESS_ACTIONS = (
    exp.AddConstraint, exp.AddPartition, exp.AlterSet, exp.AlterDistStyle, exp.AlterSortKey,
    exp.AlterIndex,
)  # fmt: skip
_DROPPED_CONSTRAINTS = frozenset({"CONSTRAINT", "INDEX", "KEY", "PRIMARY KEY", "FOREIGN KEY"})


def _read_action(dataset: str, action: exp.Expression) -> list[Change] | None:
    """Return the change of one action of ALTER TABLE, or None if it is unknown."""
    match action:
        case exp.RenameColumn():
            to = str(action.args["to"].name)
            return [ColumnRename(dataset=dataset, column=str(action.this.name), to=to)]
        case exp.AlterRename():
            return [TableRename(dataset=dataset, to=_table(action.this))]
        case exp.Drop() if str(action.args.get("kind")).upper() == "COLUMN":
            columns = [action.this, *(action.args.get("tables") or ())]
            return [ColumnDrop(dataset=dataset, column=str(c.name)) for c in columns if c]
        case exp.Drop() if str(action.args.get("kind")).upper() in _DROPPED_CONSTRAINTS:
            return []
        case exp.ColumnDef():
            return [_column_add(dataset, action)]
        case exp.Schema():
            parts = action.expressions
            added = [
                _column_add(dataset, part) for part in parts if isinstance(part, exp.ColumnDef)
            ]
            return [*added] if added and len(added) == len(parts) else None
        case exp.AlterColumn():
            return list(_read_alter_column(dataset, action))
        case exp.ModifyColumn() if isinstance(action.this, exp.ColumnDef):
            return list(_read_modify(dataset, action))
        case exp.DropPartition():
            return [LogicChange(dataset=dataset)]
        case exp.SwapTable():
            other = _table(action.this) if isinstance(action.this, exp.Table) else ""
            return [SchemaChange(dataset=name) for name in (dataset, other) if name]
        case exp.Query():
            return [SchemaChange(dataset=dataset)]
        case _:
            return [] if isinstance(action, _HARMLESS_ACTIONS) else None


def _column_add(dataset: str, column: exp.ColumnDef) -> ColumnAdd:
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
    if _column_add(dataset, definition).required:
        yield NullabilityChange(dataset=dataset, column=column, nullable=False)


# Statements that sqlglot leaves as text

# sqlglot reads PostgreSQL's `RENAME a TO b` as a rename of the table.
BARE_RENAME = re.compile(
    r"(\brename\s+)(?!column\b|to\b|as\b|constraint\b|index\b|key\b|table\b)"
    r"(\"[^\"]+\"|`[^`]+`|\w+)(\s+to\b)",
    re.IGNORECASE,
)
_ORACLE_MODIFY = re.compile(
    r"\s*alter\s+table\s+(\S+)\s+modify\s*(?:\(\s*)?(\w+)\s+(\w+\b(?:\([\d, ]+\))?(?:[\w ]*\w)?)\s*"
    r"(?:\)\s*)?(?:;\s*)?$",
    re.IGNORECASE,
)
_SP_RENAME = re.compile(
    r"\s*exec(?:ute)?\s+(?:sys\.)?sp_rename\s+(?:@\w+\s*=\s*)?N?'(?P<old>[^']+)'\s*,"
    r"\s*(?:@\w+\s*=\s*)?N?'(?P<new>[^']+)'(?:\s*,\s*(?:@\w+\s*=\s*)?N?'(?P<kind>\w+)')?",
    re.IGNORECASE,
)
HARMLESS_ALTER = re.compile(
    r"\s*alter\s+(?:materialized\s+view|view|table)\s+(?:if\s+exists\s+)?(?:only\s+)?\S+\s+"
    r"(?:owner\s+to\s+\S+|(?:enable|disable|force|no\s+force)\s+row\s+level\s+security"
    r"|(?:enable|disable)\s+trigger\s+\S+|rename\s+constraint\s+\S+\s+to\s+\S+"
    r"|validate\s+constraint\s+\S+|cluster\s+on\s+\S+|set\s+tblproperties\s*\([^)]*\)"
    r"|replica\s+identity\s+\w+|set\s+change_tracking\s*=\s*\w+"
    r"|(?:(?:alter|modify)\s+(?:column\s+)?\S+\s+)?(?:set\s+tag\s[^;]*=[^;]*|unset\s+tag\s[^;]*)"
    r")\s*(?:;\s*)?\Z",
    re.IGNORECASE,
)


def read_vendor_text(sql: str) -> Iterator[Change]:
    """Read what sqlglot does not parse: Oracle's MODIFY, and T-SQL's renames by a procedure."""
    renamed = _SP_RENAME.match(sql)
    modified = _ORACLE_MODIFY.match(sql)
    if renamed is not None:
        yield from _sp_rename(renamed["old"], renamed["new"], (renamed["kind"] or "").upper())
    elif modified is not None:
        dataset, column, definition = modified.groups()
        kind = re.split(r"(?<!\s)\s+(?:not\s+)?null", definition, flags=re.IGNORECASE)[0].strip()
        if kind:
            yield TypeChange(dataset=dataset, column=column, to=kind.lower())
        if re.search(r"not\s+null", definition, re.IGNORECASE):
            yield NullabilityChange(dataset=dataset, column=column, nullable=False)


def _sp_rename(old: str, new: str, kind: str) -> Iterator[Change]:
    plain = re.sub(r"[\[\]\"]", "", old)
    if kind in ("", "OBJECT"):
        yield TableRename(dataset=plain, to=new)
    elif kind == "COLUMN":
        dataset, _, column = plain.rpartition(".")
        yield ColumnRename(dataset=dataset, column=column, to=new)
