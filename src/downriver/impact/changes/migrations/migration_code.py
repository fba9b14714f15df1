"""Migrations that are not SQL files: Alembic, Django and SQL strings in Python, other formats.

Code that cannot be expressed as a change is `Unread`: every edited file is either read or reported.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from downriver.capture.code.python_syntax import parse_python
from downriver.impact.changes.migrations.ddl import DdlReading, read_ddl
from downriver.impact.changes.migrations.ddl_effect import HARMLESS_ALTER, mentions_ddl
from downriver.impact.changes.migrations.table_definitions import (
    DefinitionEdit,
    LocatedChange,
    TableDefinition,
)
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
from downriver.model.unread import Unread, UnreadReason

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_SHOWN = 80
# Methods that alter a table in some migration library. The object is not checked.
_ALTERING_CALLS = frozenset(
    {
        "add_column", "alter_column", "drop_column", "remove_column", "delete_column",
        "rename_column", "change_column", "drop_table", "rename_table", "drop_view",
        "alter_column_type", "alter_table", "RemoveField", "RenameField", "AlterField", "AddField",
        "DeleteModel", "RenameModel", "AlterModelTable", "RunPython", "SeparateDatabaseAndState",
    }
)  # fmt: skip
_BACKWARD = frozenset({"downgrade", "backwards", "rollback", "down"})
_DDL_STATEMENT = re.compile(
    r"\s*(?:(?:alter|drop|rename|truncate|undrop|create\s+or\s+replace)\s"
    r"|(?P<call>(?:call|exec|execute)\s+[\w.]+\s*\())",
    re.IGNORECASE,
)

_DEFINITION = re.compile(
    r"\s*(?:drop\s[^;]*;\s*)?create\s+(?:(?:or\s+replace|external|unlogged|transient)\s+)*table\b",
    re.IGNORECASE,
)


def read_python(path: str, base: str | None, head: str) -> DdlReading:
    """Return the changes that a Python file makes: by DDL in its strings, or by calls of a library.

    Code that does not parse is left to the scanner, which reports it. Tests alter nothing.
    """
    if _is_test(path):
        return DdlReading([], [], [])
    reading = _PythonMigration(path).read(head)
    if base is None or reading is None:
        return reading or DdlReading([], [], [])
    before = _PythonMigration(path).read(base) or DdlReading([], [], [])
    return DdlReading(
        _new_statements(reading.changes, before.changes, lambda located: str(located.change)),
        _new_statements(
            reading.unread, before.unread, lambda unread: f"{unread.reason} {unread.detail}"
        ),
        _new_statements(reading.replaced, before.replaced, lambda located: str(located.change)),
        DefinitionEdit(before.definitions.after, reading.definitions.after),
    )


def _new_statements(after: list[Any], before: list[Any], key: Any) -> list[Any]:
    """Return the statements that are only in the new version of a file."""
    known = Counter(map(key, before))
    added = []
    for item in after:
        if known[key(item)] > 0:
            known[key(item)] -= 1
        else:
            added.append(item)
    return added


def _is_test(path: str) -> bool:
    parts = PurePosixPath(path).parts
    name = parts[-1]
    return (
        "tests" in parts[:-1]
        or "test" in parts[:-1]
        or name.startswith(("test_", "conftest."))
        or name.endswith("_test.py")
    )


class _PythonMigration(ast.NodeVisitor):
    def __init__(self, path: str) -> None:
        self._path = path
        self._definitions: dict[str, TableDefinition] = {}
        self._found = DdlReading([], [], [], DefinitionEdit({}, self._definitions))
        self._tables: dict[str, str] = {}  # of `with op.batch_alter_table("t") as batch`
        self._text = ""

    def read(self, text: str) -> DdlReading | None:
        try:
            tree = parse_python(text)
        except (SyntaxError, RecursionError):
            return None
        self._text = text
        self.visit(tree)
        return self._found

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.name not in _BACKWARD:
            self._visit_body(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._visit_body(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._visit_body(node)

    def visit_Module(self, node: ast.Module) -> None:
        self._visit_body(node)

    def _visit_body(
        self, node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    ) -> None:
        """Visit every node except a docstring."""
        documented = ast.get_docstring(node, clean=False) is not None
        for statement in node.body[1:] if documented else node.body:
            self.visit(statement)

    # SQL in strings

    def visit_Constant(self, node: ast.Constant) -> None:
        if not isinstance(node.value, str):
            return
        if _DEFINITION.match(node.value):
            first = node.lineno - 1
            for name, table in read_ddl(node.value, path=self._path).definitions.after.items():
                self._definitions[name] = table._replace(line=table.line + first)
        if _runs_ddl(node.value):
            reading = read_ddl(node.value, path=self._path)
            first = node.lineno - 1
            for part, located in ((self._found.changes, reading.changes),
                                  (self._found.replaced, reading.replaced)):  # fmt: skip
                part.extend(one._replace(line=one.line + first) for one in located)
            for unread in reading.unread:
                self._unread(unread.line + first, unread.reason, unread.detail)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        self._visit_built(node, node.values)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        parts = [part for part in ast.walk(node) if isinstance(part, ast.Constant)]
        built = any(isinstance(part.value, str) for part in parts)
        if built and isinstance(node.op, ast.Add | ast.Mod):
            self._visit_built(node, parts)
        else:
            self.generic_visit(node)

    def _visit_built(self, node: ast.expr, parts: Sequence[ast.expr]) -> None:
        """Note a statement that is built when the code runs."""
        texts = [p.value for p in parts if isinstance(p, ast.Constant) and isinstance(p.value, str)]
        statement = "?".join(texts)
        if _runs_ddl(statement):
            self._unread(node.lineno, UnreadReason.DYNAMIC_SQL, self._quote(node))
        elif HARMLESS_ALTER.match(statement):
            return
        elif isinstance(node, ast.JoinedStr):
            self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = _called(node)
        receiver = node.func.value if isinstance(node.func, ast.Attribute) else None
        text = receiver.value if isinstance(receiver, ast.Constant) else None
        if name == "format" and isinstance(text, str) and _runs_ddl(text):
            self._unread(node.lineno, UnreadReason.DYNAMIC_SQL, self._quote(node))
            return
        if name == "execute" and _is_op(receiver) and not _is_known_text(node.args):
            self._unread(node.lineno, UnreadReason.DYNAMIC_SQL, self._quote(node))
        if name in _ALTERING_CALLS:
            self._alter(node, name, receiver)
        self.generic_visit(node)

    # Calls that alter tables

    def visit_With(self, node: ast.With) -> None:
        for item in node.items:
            call = item.context_expr
            if (
                isinstance(call, ast.Call)
                and _called(call) == "batch_alter_table"
                and isinstance(item.optional_vars, ast.Name)
            ):
                table = _string(_argument(call, 0, "table_name"))
                self._tables[item.optional_vars.id] = _qualified(call, table)
        self.generic_visit(node)

    def _alter(self, node: ast.Call, name: str, receiver: ast.expr | None) -> None:
        changes: list[Change] | None = None
        if _is_op(receiver):
            changes = _alembic_changes(node, name, None)
        elif isinstance(receiver, ast.Name) and self._tables.get(receiver.id):
            changes = _alembic_changes(node, name, self._tables[receiver.id])
        if changes is None:
            self._unread(node.lineno, UnreadReason.MIGRATION_CODE, self._quote(node))
        else:
            located = [LocatedChange(change, self._path, node.lineno) for change in changes]
            self._found.changes.extend(located)

    def _unread(self, line: int, reason: UnreadReason, detail: str) -> None:
        unread = Unread(path=self._path, line=line, reason=reason, detail=detail)
        self._found.unread.append(unread)

    def _quote(self, node: ast.expr) -> str:
        text = " ".join((ast.get_source_segment(self._text, node) or "").split())
        return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _runs_ddl(text: str) -> bool:
    """Return whether a string is a statement that alters a table, or runs a procedure."""
    match = _DDL_STATEMENT.match(text)
    if match is None or HARMLESS_ALTER.match(text):
        return False
    return match["call"] is not None or mentions_ddl(text)


def _called(node: ast.Call) -> str:
    match node.func:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
        case _:
            return ""


def _is_op(node: ast.expr | None) -> bool:
    """Return whether a name is Alembic's `op`, as every migration imports it."""
    return isinstance(node, ast.Name) and node.id == "op"


def _is_known_text(arguments: Sequence[ast.expr]) -> bool:
    """Return whether SQL is a constant, possibly inside `text(...)`."""
    first = arguments[0] if arguments else None
    if isinstance(first, ast.Call):
        return _is_known_text(first.args)
    return isinstance(first, ast.Constant | ast.JoinedStr | ast.BinOp)


def _argument(node: ast.Call, place: int, name: str) -> ast.expr | None:
    named = [keyword.value for keyword in node.keywords if keyword.arg == name]
    return named[0] if named else node.args[place] if place < len(node.args) else None


def _string(node: ast.expr | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _qualified(node: ast.Call, table: str) -> str:
    schema = _string(_argument(node, 99, "schema"))
    return f"{schema}.{table}" if schema and table else table


def _alembic_changes(node: ast.Call, name: str, table: str | None) -> list[Change] | None:
    """Return the change of an Alembic operation, or None if a name in it is not a literal."""
    first = 0 if table is not None else 1
    dataset = table if table is not None else _qualified(node, _string(_argument(node, 0, _TABLE)))
    column = _string(_argument(node, first, "column_name"))
    if not dataset:
        return None
    match name:
        case "drop_table":
            return [TableDrop(dataset=dataset)]
        case "rename_table":
            to = _string(_argument(node, 1, "new_table_name"))
            return [TableRename(dataset=dataset, to=to)] if to else None
        case "drop_column" if column:
            return [ColumnDrop(dataset=dataset, column=column)]
        case "add_column":
            return _alembic_add(dataset, _argument(node, first, "column"))
        case "alter_column" if column:
            return list(_alembic_alter(node, dataset, column))
        case _:
            return None


_TABLE = "table_name"


def _alembic_add(dataset: str, column: ast.expr | None) -> list[Change] | None:
    if not isinstance(column, ast.Call) or not (name := _string(_argument(column, 0, "name"))):
        return None
    options = {keyword.arg: keyword.value for keyword in column.keywords}
    nullable = options.get("nullable")
    required = isinstance(nullable, ast.Constant) and nullable.value is False
    filled = "server_default" in options or "default" in options
    kind = column.args[1] if len(column.args) > 1 else None
    return [
        ColumnAdd(
            dataset=dataset,
            column=name,
            data_type=_sqlalchemy_type(kind),
            required=required and not filled,
        )
    ]


def _alembic_alter(node: ast.Call, dataset: str, column: str) -> Iterator[Change]:
    to = _string(_argument(node, 99, "new_column_name"))
    kind = _argument(node, 99, "type_")
    nullable = _argument(node, 99, "nullable")
    if to:
        yield ColumnRename(dataset=dataset, column=column, to=to)
    if kind is not None:
        yield TypeChange(dataset=dataset, column=column, to=_sqlalchemy_type(kind))
    if isinstance(nullable, ast.Constant) and isinstance(nullable.value, bool):
        yield NullabilityChange(dataset=dataset, column=column, nullable=nullable.value)


_SQLALCHEMY_TYPES = {
    "biginteger": "bigint", "smallinteger": "smallint", "string": "varchar", "unicode": "varchar",
    "unicodetext": "text", "datetime": "timestamp", "largebinary": "bytea",
}  # fmt: skip


def _sqlalchemy_type(node: ast.expr | None) -> str:
    """Return a type of SQLAlchemy as databases write it: `sa.Numeric(10, 2)` is numeric(10, 2)."""
    if node is None:
        return ""
    arguments = ""
    if isinstance(node, ast.Call):
        sizes = [ast.unparse(argument) for argument in node.args]
        arguments = f"({', '.join(sizes)})" if sizes else ""
        node = node.func
    name = node.attr if isinstance(node, ast.Attribute) else ast.unparse(node)
    return f"{_SQLALCHEMY_TYPES.get(name.casefold(), name.casefold())}{arguments}"


# Files of other types

_CALLS_IN_TEXT = re.compile(
    r"\b(?:remove|rename|change|drop|alter|add)_(?:column|columns|table)\b"
    r"|\b(?:drop|rename|alter|modify|add)(?:Column|Table|DataType|NotNullConstraint|View)\b"
    r"|\bremoveColumn\b|\bchangeColumn\b"
)


def read_other(path: str, base: str | None, head: str) -> Iterator[Unread]:
    """Yield the new lines of a file of another type that seem to alter a table."""
    known = {line.strip() for line in (base or "").splitlines()}
    for number, line in enumerate(head.splitlines(), 1):
        text = line.strip()
        if not text or text in known:
            continue
        if mentions_ddl(text):
            reason = UnreadReason.FILE_TYPE
        elif _CALLS_IN_TEXT.search(text):
            reason = UnreadReason.MIGRATION_CODE
        else:
            continue
        yield Unread(path=path, line=number, reason=reason, detail=text[:_SHOWN])
