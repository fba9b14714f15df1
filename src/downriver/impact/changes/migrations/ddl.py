"""Reads migrations: the changes that DDL makes, and the statements whose effect is unknown.

A statement counts as read only when its effect on tables is known. Everything else is `Unread`: a
migration with a typing error never counts as one without effect.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from downriver.capture.sql.limits import Budget, SqlLimits
from downriver.capture.sql.script_parser import ScriptParser
from downriver.capture.sql.templates.jinja import Template, render_template
from downriver.capture.sql.templates.tags import is_template
from downriver.capture.sql.text.client_commands import remove_client_commands
from downriver.capture.sql.text.dialect import get_dialect
from downriver.capture.sql.text.split import replace_delimiters, split_statements
from downriver.capture.sql.text.tokens import source_text, tokenize_leniently
from downriver.errors import InvalidRequestError
from downriver.impact.changes.migrations.ddl_effect import (
    BARE_RENAME,
    DDL_WORDS,
    HARMLESS_ALTER,
    DdlEffect,
    read_vendor_text,
    strip_strings,
)
from downriver.impact.changes.migrations.table_definitions import (
    DefinedTables,
    DefinitionEdit,
    LocatedChange,
    TableDefinition,
)
from downriver.model.changes import (
    Change,
    ColumnAdd,
    SchemaChange,
    TableDrop,
)
from downriver.model.unread import Unread, UnreadReason

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from downriver.capture.sql.text.parse import ScriptStatement


class DdlReading(NamedTuple):
    """The changes of a migration, the statements that could not be read, and replaced tables.

    `replaced` are tables that are created again: by CREATE OR REPLACE, or by DROP and CREATE.
    `definitions` are the tables whose columns the file lists, before and after an edit.
    """

    changes: list[LocatedChange]
    unread: list[Unread]
    replaced: list[LocatedChange]
    definitions: DefinitionEdit = DefinitionEdit({}, {})


def read_ddl(
    sql: str, dialect: str | None = None, *, path: str = "", before: str | None = None
) -> DdlReading:
    """Read a migration. `before` is its text before an edit: statements in both are left out."""
    new = _read_statements(sql, dialect, path)
    if before is None:
        return _as_reading(new, new)._replace(definitions=DefinitionEdit({}, _definitions(new)))
    old = _read_statements(before, dialect, path)
    known = Counter(statement.key for statement in old)
    added = []
    for statement in new:
        if known[statement.key] > 0:
            known[statement.key] -= 1
        else:
            added.append(statement)
    definitions = DefinitionEdit(_definitions(old), _definitions(new))
    found = _as_reading(added, new)
    replaced = [
        located
        for located in found.replaced
        if not definitions.has_both(located.change.dataset)  # its columns are compared
    ]
    return found._replace(replaced=replaced, definitions=definitions)


def _definitions(statements: Sequence[_Statement]) -> dict[str, TableDefinition]:
    """Return the tables that a script creates, as they are at its end, by case-folded name."""
    tables = DefinedTables()
    for statement in statements:
        if statement.columns:
            tables.create(TableDefinition(statement.made[0], statement.columns, *statement.place))
        for change in statement.changes:
            tables.apply(change)
    return tables.by_name


def parse_ddl(sql: str, dialect: str | None = None) -> list[Change]:
    """Return the changes of a migration; raises when it has none, or one cannot be read."""
    found = read_ddl(sql, dialect)
    for unread in found.unread:
        raise InvalidRequestError("ddl", f"line {unread.line}: cannot read {unread.detail!r}")
    if not found.changes:
        raise InvalidRequestError("ddl", NO_CHANGES)
    return [located.change for located in found.changes]


NO_CHANGES = "has no statement that changes a table, such as ALTER TABLE or DROP TABLE"


class _Statement(NamedTuple):
    """One statement of a migration.

    `made` are the tables that it creates, and `replaces` those that it creates again. `columns` are
    the columns listed for the created table.
    """

    key: str
    place: tuple[str, int]
    changes: tuple[Change, ...] = ()
    unread: Unread | None = None
    made: tuple[str, ...] = ()
    replaces: bool = False
    columns: tuple[ColumnAdd, ...] = ()


def _as_reading(added: Sequence[_Statement], every: Sequence[_Statement]) -> DdlReading:
    """Leave out changes to tables that the same migration creates."""
    made = {table.casefold() for statement in every for table in statement.made}
    dropped = {
        change.dataset.casefold()
        for statement in every
        for change in statement.changes
        if isinstance(change, TableDrop)
    }
    changes: list[LocatedChange] = []
    replaced: list[LocatedChange] = []
    for statement in added:
        changes += [
            LocatedChange(change, *statement.place)
            for change in statement.changes
            if change.dataset.casefold() not in made
        ]
        replaced += [
            LocatedChange(SchemaChange(dataset=table), *statement.place)
            for table in statement.made
            if statement.replaces or table.casefold() in dropped
        ]
    once = [located for at, located in enumerate(changes) if located not in changes[:at]]
    unread = [statement.unread for statement in added if statement.unread is not None]
    return DdlReading(once, list(dict.fromkeys(unread)), replaced)


def _read_statements(sql: str, dialect: str | None, path: str) -> list[_Statement]:
    return list(_Migration(dialect, path).read(sql))


# Commands of database clients: run a file, run a shell command, run a result as SQL.
_INCLUDE = re.compile(
    r"^[ \t]*(?:\\i(?:r|nclude|nclude_relative)?\s|@{1,2}[\w./~\"']|source\s+\S+\.\w+|\.read\s"
    r"|:r\s|!)|^[ \t]*\\!|\\gexec\b",
    re.IGNORECASE | re.MULTILINE,
)
# Settings and messages of psql, SQL*Plus and sqlcmd, and Oracle's end of a statement.
_CLIENT_SETTING = re.compile(
    r"^[ \t]*(?:\\(?!i(?:r|nclude|nclude_relative)?\s|!|gexec)\w+[^\n]*"
    r"|(?:prompt|rem|spool|whenever|set\s+(?:echo|define|serveroutput|feedback|verify|heading"
    r"|linesize|pagesize|termout|timing|scan|sqlblanklines))\b[^\n]*|/[ \t]*"
    r"|:(?:setvar|on)\b[^\n]*)$",
    re.IGNORECASE | re.MULTILINE,
)
_PLACEHOLDER = re.compile(
    r"\$\{[^}\n]{0,200}\}|\$\(\w+\)|#\{[^}\n]{0,200}\}|(?<![\w:]):'?\"?[A-Za-z_]\w*|&&?\w+|%\(\w+\)s|%s"
    r"|(?<![{%])\{\w*\}|<<\w+>>|__\w+__"
)
# A table whose name is an expression: IDENTIFIER($name), but not IDENTIFIER('orders').
_DYNAMIC_NAME = re.compile(r"\bidentifier\s{0,20}\(\s{0,20}[$:@\w]", re.IGNORECASE)
_SHOWN = 80


class _Migration:
    """Reads the statements of one file."""

    def __init__(self, dialect: str | None, path: str) -> None:
        self._named_dialect = dialect
        self._dialect = get_dialect(dialect or "")
        self._path = path

    def read(self, sql: str) -> Iterator[_Statement]:
        budget = Budget(SqlLimits())
        if len(sql) > budget.limits.characters:
            yield self._unread("", 0, UnreadReason.TOO_LARGE, f"{len(sql):,} characters")
            return
        texts = [sql]
        if is_template(sql):
            rendered = render_template(sql, Template(), budget)
            texts = rendered.texts
            for spot in rendered.blind_spots:
                yield self._unread(spot.message, spot.line, UnreadReason.TEMPLATE, spot.message)
            for condition in rendered.conditions:
                message = f"{condition} is only known at run time"
                yield self._unread(message, 1, UnreadReason.TEMPLATE, message)
        for text in texts:
            yield from self._read_text(text, budget)

    def _read_text(self, sql: str, budget: Budget) -> Iterator[_Statement]:
        for found in _INCLUDE.finditer(sql):
            line = sql.count("\n", 0, found.start() + 1) + 1
            whole = sql[found.start() :].lstrip().split("\n", 1)[0]
            yield self._unread(whole, line, UnreadReason.INCLUDE, whole)
        text = _blanked(_INCLUDE_LINE, _blanked(_CLIENT_SETTING, sql))
        text = replace_delimiters(BARE_RENAME.sub(r"\1COLUMN \2\3", text))
        text = remove_client_commands(text)
        tokens, problem = tokenize_leniently(text, self._dialect)
        if problem is not None:
            reason = UnreadReason.SQL_SYNTAX
            yield self._unread(problem.message, problem.line, reason, problem.message)
        reader = ScriptParser(self._dialect, budget)
        for chunk in split_statements(tokens):
            lines = chunk[0].line - 1
            yield from self._read_chunk(source_text(chunk, text), lines, reader)

    def _read_chunk(self, chunk: str, lines: int, reader: ScriptParser) -> Iterator[_Statement]:
        """Read the text between two semicolons, and check that no part of it was skipped."""
        read = ""
        empty = True
        for parsed in reader.read(chunk):
            empty = False
            statement = self._read_one(parsed, lines)
            read += f"{parsed.sql}\n"
            yield statement
        left_out = _ddl_words(chunk) > _ddl_words(read)
        if left_out or (empty and not _is_block_word(chunk)):
            yield self._unread(chunk, lines + 1, UnreadReason.SQL_SYNTAX, chunk)

    def _read_one(self, parsed: ScriptStatement, lines: int) -> _Statement:
        line = parsed.line + lines
        if HARMLESS_ALTER.match(parsed.sql):
            return self._read_as(parsed, lines, DdlEffect(True))
        for spot in parsed.blind_spots:
            reason = _REASONS.get(spot.kind)
            if reason is UnreadReason.SQL_SYNTAX:
                again = self._read_in_other_dialect(parsed, lines)
                if again is not None:
                    return again
            if reason is not None:
                at = (spot.line or parsed.line) + lines
                return self._unread(parsed.sql, at, reason, parsed.sql)
        if _DYNAMIC_NAME.search(parsed.sql) and not isinstance(parsed.tree, exp.Query):
            return self._unread(parsed.sql, line, UnreadReason.DYNAMIC_SQL, parsed.sql)
        effect = DdlEffect.of(parsed)
        if effect.known and _has_placeholder(parsed.sql, effect):
            return self._unread(parsed.sql, line, UnreadReason.TEMPLATE, parsed.sql)
        if not effect.known:
            again = self._read_in_other_dialect(parsed, lines)
            return again or self._unread(parsed.sql, line, effect.reason, parsed.sql)
        return self._read_as(parsed, lines, effect)

    def _read_as(self, parsed: ScriptStatement, lines: int, effect: DdlEffect) -> _Statement:
        place = (self._path, parsed.line + lines)
        key = _key(parsed.sql)
        return _Statement(
            key=key,
            place=place,
            changes=effect.changes,
            made=effect.made,
            replaces=effect.replaces,
            columns=effect.columns,
        )

    def _read_in_other_dialect(self, parsed: ScriptStatement, lines: int) -> _Statement | None:
        """Read a statement in another dialect if no dialect was named, or by its known shapes."""
        changes = tuple(read_vendor_text(parsed.sql))
        if changes:
            return self._read_as(parsed, lines, DdlEffect(True, changes))
        for name in _OTHER_DIALECTS if not self._named_dialect else ():
            try:
                tree = sqlglot.parse_one(parsed.sql, dialect=name)
            except (SqlglotError, RecursionError):
                continue
            effect = DdlEffect.of(parsed._replace(tree=tree, blind_spots=()))
            if effect.known and effect.changes and _is_spelled_out(parsed.sql, effect):
                return self._read_as(parsed, lines, effect)
        return None

    def _unread(self, key: str, line: int, reason: UnreadReason, text: str) -> _Statement:
        detail = " ".join(text.split())
        if len(detail) > _SHOWN:
            detail = f"{detail[:_SHOWN]}…"
        unread = Unread(path=self._path, line=line, reason=reason, detail=detail)
        return _Statement(f"{reason.value}: {_key(key)}", (self._path, line), (), unread)


_OTHER_DIALECTS = ("postgres", "mysql", "tsql", "oracle", "snowflake", "databricks", "bigquery")
_INCLUDE_LINE = re.compile(rf"(?:{_INCLUDE.pattern})[^\n]*", re.IGNORECASE | re.MULTILINE)
_REASONS = {
    "unparsed": UnreadReason.SQL_SYNTAX,
    "unreadable": UnreadReason.SQL_SYNTAX,
    "too_large": UnreadReason.TOO_LARGE,
    "too_deep": UnreadReason.TOO_DEEP,
    "dynamic_sql": UnreadReason.DYNAMIC_SQL,
    "procedure_call": UnreadReason.PROCEDURE_CALL,
    "foreign_code": UnreadReason.FOREIGN_CODE,
    "included_file": UnreadReason.INCLUDE,
    "template": UnreadReason.TEMPLATE,
}


def _key(sql: str) -> str:
    """Return the text by which a statement is recognized in another version of its file."""
    return " ".join(sql.split()).rstrip("; ").casefold()


def _blanked(pattern: re.Pattern[str], text: str) -> str:
    return pattern.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)


def _ddl_words(sql: str) -> int:
    return len(DDL_WORDS.findall(strip_strings(sql)))


_TRANSACTION = re.compile(
    r"(?:(?:begin|end|start|commit) ?(?:tran|transaction|work|try|catch|if|loop|while|case)?"
    r" ?\w*)? ?(?:\$\w*\$)? ?(?:language (?:plpgsql|sql))?\Z",
    re.IGNORECASE,
)
_DECLARATION = re.compile(r"\s*(?:declare|set|let)\b|\s*@?\w+\s*:=", re.IGNORECASE)


def _is_block_word(chunk: str) -> bool:
    """Return whether a piece of a script contains no statement, such as a bracket of a block."""
    text = " ".join(strip_strings(chunk).split())
    if not text or _TRANSACTION.match(text):
        return True
    return _DECLARATION.match(text) is not None


def _is_spelled_out(sql: str, effect: DdlEffect) -> bool:
    """Return whether this is a list of actions, and not a list of columns to add."""
    added = sum(isinstance(change, ColumnAdd) for change in effect.changes)
    written = len(re.findall(r"\badd\b", sql, re.IGNORECASE))
    return added <= written and not _has_placeholder(sql, effect)


def _has_placeholder(sql: str, effect: DdlEffect) -> bool:
    """Return whether a change contains a placeholder for a name or type."""
    if not effect.changes and not effect.made:
        return False
    return _PLACEHOLDER.search(strip_strings(sql)) is not None
