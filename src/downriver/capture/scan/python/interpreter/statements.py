"""Statements: assignments, definitions, branches and loops."""

from __future__ import annotations

import ast
from contextlib import ExitStack, nullcontext
from typing import TYPE_CHECKING, Any

from downriver.capture.scan.python.frames.columns import deps_of
from downriver.capture.scan.python.frames.frame import Frame
from downriver.capture.scan.python.frames.steps import with_assignment, with_condition
from downriver.capture.scan.python.interpreter.expressions import evaluate, rounds_of
from downriver.capture.scan.python.interpreter.interpreter import imported_value
from downriver.capture.scan.python.interpreter.values import (
    UNKNOWN,
    Class,
    ColumnPresence,
    Function,
    ImportedName,
    Module,
    NameScope,
    Object,
    SparkReader,
    SparkSessionValue,
    SparkWriter,
    Value,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from downriver.capture.scan.python.interpreter.interpreter import Interpreter

_MISSING_COLUMN = frozenset({"AnalysisException", "KeyError", "AttributeError"})

Guard = frozenset[str]
# Whether the block ends here, and the columns that guard the following statements.
Outcome = tuple[bool, Guard]
_CONTINUES: Outcome = (False, frozenset())
_ENDS: Outcome = (True, frozenset())


def run_block(run: Interpreter, body: Sequence[ast.stmt]) -> bool:
    """Follow statements; True when the code after the block is not reached."""
    for at, node in enumerate(body):
        if not run.step():
            return True
        left, guard = _STATEMENTS.get(type(node), _nothing)(run, node)
        if left:
            return True
        if guard:  # `if "x" not in df.columns: return df`
            with run.recorder.guarded(guard):
                return run_block(run, body[at + 1 :])
    return False


def _nothing(run: Interpreter, node: ast.stmt) -> Outcome:
    return _CONTINUES


def _expression(run: Interpreter, node: ast.Expr) -> Outcome:
    value = evaluate(run, node.value)
    match node.value:
        case ast.Call(func=ast.Attribute(value=ast.Name() as name), keywords=options) if any(
            option.arg == "inplace" and ast.unparse(option.value) == "True" for option in options
        ):
            if isinstance(value, Frame):
                bind(run, name, value)
    return _CONTINUES


# Imports and assignments


def _import(run: Interpreter, node: ast.Import) -> Outcome:
    for alias in node.names:
        name = alias.name if alias.asname else alias.name.partition(".")[0]
        known = run.modules.load(run, name, 0)
        run.scope.names[alias.asname or name] = (
            ImportedName(name) if known is None else Module(known)
        )
    return _CONTINUES


def _import_from(run: Interpreter, node: ast.ImportFrom) -> Outcome:
    known = run.modules.load(run, node.module or "", node.level)
    for alias in node.names:
        if known is not None and alias.name == "*":
            imported = {n: imported_value(v, node.lineno) for n, v in known.names.items()}
            run.scope.names.update({n: v for n, v in imported.items() if not n.startswith("_")})
        elif alias.name != "*":
            run.scope.names[alias.asname or alias.name] = _imported(run, node, alias.name, known)
        else:
            names = _STAR_NAMES.get(node.module or "", ())
            run.scope.names.update({n: ImportedName(f"{node.module}.{n}") for n in names})
    return _CONTINUES


def _imported(run: Interpreter, node: ast.ImportFrom, name: str, known: NameScope | None) -> Value:
    """Return an imported value: from a file of the repository, such a file, or a name."""
    if known is not None and name in known.names:
        return imported_value(known.names[name], node.lineno)
    full_name = f"{node.module}.{name}" if node.module else name
    inner = run.modules.load(run, full_name, node.level)
    return ImportedName(full_name) if inner is None else Module(inner)


_STAR_FUNCTIONS = (
    "col", "column", "lit", "expr", "when", "coalesce", "count", "avg", "mean", "countDistinct",
    "collect_list", "collect_set", "first", "last", "row_number", "rank", "dense_rank", "lag",
    "lead", "to_date", "to_timestamp", "date_format", "date_trunc", "datediff", "year", "month",
    "concat", "concat_ws", "upper", "lower", "trim", "split", "explode", "udf", "desc", "asc",
    "regexp_replace", "from_json", "to_json", "struct", "array", "size", "isnull", "current_date",
    "current_timestamp", "monotonically_increasing_id", "sha2", "md5", "substring", "broadcast",
)  # fmt: skip


_STAR_NAMES: dict[str, tuple[str, ...]] = {
    "pyspark.sql.functions": _STAR_FUNCTIONS,
    "pyspark.sql": ("SparkSession", "SQLContext", "Row", "DataFrame", "Window"),
    "awsglue.transforms": (
        "ApplyMapping", "SelectFields", "DropFields", "RenameField", "Join", "Filter", "Map",
        "ResolveChoice", "DropNullFields", "Relationalize", "SelectFromCollection", "UnnestFrame",
    ),
    "awsglue.context": ("GlueContext",),
    "awsglue.dynamicframe": ("DynamicFrame", "DynamicFrameCollection"),
}  # fmt: skip


def _assign(run: Interpreter, node: ast.Assign) -> Outcome:
    value = evaluate(run, node.value)
    for target in node.targets:
        bind(run, target, value)
        if isinstance(target, ast.Subscript):
            _record_assignment(run, target, node.value)
    return _CONTINUES


def _record_assignment(run: Interpreter, target: ast.Subscript, value: ast.expr) -> None:
    """Add the step to a frame that sets one of its columns."""
    holder = target.value.value if isinstance(target.value, ast.Attribute) else target.value
    owner = run.scope.find(holder.id) if isinstance(holder, ast.Name) else None
    if isinstance(owner, Frame) and isinstance(holder, ast.Name):
        bind(run, holder, with_assignment(run, owner, target, value))


def _annotated(run: Interpreter, node: ast.AnnAssign) -> Outcome:
    if node.value is not None:
        bind(run, node.target, evaluate(run, node.value))
    return _CONTINUES


def _augmented(run: Interpreter, node: ast.AugAssign) -> Outcome:
    operation = ast.BinOp(left=_as_expression(node.target), op=node.op, right=node.value)
    bind(run, node.target, evaluate(run, ast.copy_location(operation, node)))
    return _CONTINUES


def _as_expression(target: ast.expr) -> ast.expr:
    return ast.parse(ast.unparse(target), mode="eval").body


def bind(run: Interpreter, target: ast.expr, value: Value) -> None:
    """Assign a value to a target."""
    match target:
        case ast.Name(id=name):
            run.scope.names[name] = value
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            known = list(value) if isinstance(value, (list, tuple)) else []
            for at, part in enumerate(parts):
                bind(run, part, known[at] if at < len(known) else UNKNOWN)
        case ast.Subscript(value=base, slice=key):
            _bind_item(run, base, evaluate(run, key), value, target.lineno)
        case ast.Attribute(value=base, attr=name):
            owner = evaluate(run, base)
            if isinstance(owner, Object):
                owner.fields[name] = value


def _bind_item(run: Interpreter, base: ast.expr, key: Value, value: Value, line: int) -> None:
    """Assign `df["total"] = …` as a column of a frame, `d["k"] = …` as an entry."""
    owner = evaluate(run, base)
    if isinstance(owner, Frame):
        frame = owner
        for name in key if isinstance(key, list) else [key]:
            if isinstance(name, tuple):  # df.loc[mask, "x"] = …
                name = name[-1]
            if isinstance(name, str):
                frame = frame.with_column(name, deps_of(run, value, owner, "select"))
        holder = base.value if isinstance(base, ast.Attribute) else base
        if isinstance(holder, ast.Name):
            bind(run, holder, frame)
    elif isinstance(owner, dict) and isinstance(key, str):
        owner[str(key)] = value


# Definitions


def _define(run: Interpreter, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Outcome:
    decorators = tuple(_decorator_name(run, d) for d in node.decorator_list)
    function = Function(node, run.scope, None, decorators)
    run.scope.names[node.name] = run.airflow.keep_options(run, function)
    run.assets.keep(run, function)
    if run.scope.outer is not None:
        run.defined.append((function, run.recorder.job))
    return _CONTINUES


def _decorator_name(run: Interpreter, node: ast.expr) -> str:
    inner = node.func if isinstance(node, ast.Call) else node
    value = evaluate(run, inner)
    return value.name if isinstance(value, ImportedName) else ast.unparse(inner)


def _define_class(run: Interpreter, node: ast.ClassDef) -> Outcome:
    bases = tuple(evaluate(run, base) for base in node.bases)
    scope = NameScope(run.scope)
    before, run.scope = run.scope, scope
    run_block(run, [s for s in node.body if isinstance(s, (ast.Assign, ast.AnnAssign))])
    run.scope = before
    run.scope.names[node.name] = Class(node, scope, bases)
    return _CONTINUES


# Branches and loops


def _if(run: Interpreter, node: ast.If) -> Outcome:
    test = evaluate(run, node.test)
    has = test.names if isinstance(test, ColumnPresence) and not test.negated else frozenset[str]()
    lacks = test.names if isinstance(test, ColumnPresence) and test.negated else frozenset[str]()
    begun = dict(run.scope.names)
    before = dict(begun)
    with run.recorder.guarded(has):
        left_body = run_block(run, node.body)
    after_body, run.scope.names = run.scope.names, before
    with run.recorder.guarded(lacks):
        left_else = run_block(run, node.orelse)
    if left_body and left_else:
        return _ENDS
    if left_else:
        run.scope.names = after_body
    elif not left_body:
        merged = _either_names(after_body, run.scope.names)
        run.scope.names = with_condition(run, node.test, merged, begun)
    is_quiet = left_body and not isinstance(node.body[-1], ast.Raise)
    return (False, lacks if is_quiet else frozenset())


def _either_names(first: dict[str, Value], second: dict[str, Value]) -> dict[str, Value]:
    merged = {**first, **second}
    for name in first.keys() & second.keys():
        merged[name] = either(first[name], second[name])
    return merged


_DEFINITIONS = (ImportedName, Function, Class, Module)


def either(first: Value, second: Value) -> Value:
    """Return the value of a variable that has one of two values."""
    if first is second:
        return first
    if isinstance(first, Frame) and isinstance(second, Frame):
        return first.merged(second)
    if isinstance(first, SparkSessionValue) or isinstance(second, SparkSessionValue):
        return SparkSessionValue()
    if isinstance(first, (SparkReader, SparkWriter)) and type(first) is type(second):
        return _either_settings(first, second)
    if isinstance(first, _DEFINITIONS) and isinstance(second, _DEFINITIONS):
        return first  # the same object for another version of a library
    for known, unknown in ((first, second), (second, first)):
        if unknown is UNKNOWN or unknown is None:
            return known
    same = type(first) is type(second) and isinstance(first, (str, int, float)) and first == second
    return first if same else UNKNOWN


def _either_settings(first: Value, second: Value) -> Value:
    """Return a reader or writer with the settings of both branches, unknown if they differ."""
    if first.format and second.format and first.format != second.format:
        return UNKNOWN
    merged = first._replace(
        format=first.format or second.format, options={**first.options, **second.options}
    )
    if isinstance(first, SparkWriter):
        return merged._replace(frame=first.frame.merged(second.frame))
    return merged


def _try(run: Interpreter, node: ast.Try) -> Outcome:
    caught = {name for handler in node.handlers if not _raises(handler) for name in _types(handler)}
    is_guard = bool(caught & _MISSING_COLUMN)
    with run.recorder.guarded(None) if is_guard else nullcontext():
        left = run_block(run, node.body)
    tried = run.scope.names
    for handler in node.handlers:
        run.scope.names = dict(tried)
        if not run_block(run, handler.body):
            tried = _either_names(tried, run.scope.names)
    run.scope.names = tried
    if not left:
        left = run_block(run, node.orelse)
    return (run_block(run, node.finalbody) or (left and not node.handlers), frozenset())


def _raises(handler: ast.ExceptHandler) -> bool:
    return any(isinstance(inner, ast.Raise) for inner in handler.body)


def _types(handler: ast.ExceptHandler) -> list[str]:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return [ast.unparse(kind).rpartition(".")[2] for kind in kinds if kind is not None]


def _for(run: Interpreter, node: ast.For | ast.AsyncFor) -> Outcome:
    items = evaluate(run, node.iter)
    if isinstance(items, dict):
        items = list(items)
    if isinstance(items, Frame):  # pandas iterates over chunks of a large file
        items = [items]
    rounds = rounds_of(run, items, node.lineno)
    for item in rounds:
        bind(run, node.target, item)
        run_block(run, node.body)
    run_block(run, node.orelse)
    return _CONTINUES


def _while(run: Interpreter, node: ast.While) -> Outcome:
    evaluate(run, node.test)
    run_block(run, node.body)
    return _CONTINUES


def _with(run: Interpreter, node: ast.With | ast.AsyncWith) -> Outcome:
    with ExitStack() as stack:
        for item in node.items:
            value = evaluate(run, item.context_expr)
            stack.enter_context(run.airflow.inside(value))
            if item.optional_vars is not None:
                bind(run, item.optional_vars, value)
        return (run_block(run, node.body), frozenset())


def _return(run: Interpreter, node: ast.Return) -> Outcome:
    value = evaluate(run, node.value) if node.value is not None else None
    run.returned.append(value)
    return _ENDS


def _raise(run: Interpreter, node: ast.Raise) -> Outcome:
    if node.exc is not None:
        evaluate(run, node.exc)
    return _ENDS


def _end_block(run: Interpreter, node: ast.stmt) -> Outcome:
    return _ENDS


def _assert(run: Interpreter, node: ast.Assert) -> Outcome:
    evaluate(run, node.test)
    return _CONTINUES


def _match(run: Interpreter, node: ast.Match) -> Outcome:
    evaluate(run, node.subject)
    for case in node.cases:
        run_block(run, case.body)
    return _CONTINUES


_STATEMENTS: dict[type[ast.stmt], Callable[[Interpreter, Any], Outcome]] = {
    ast.Expr: _expression,
    ast.Import: _import,
    ast.ImportFrom: _import_from,
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.FunctionDef: _define,
    ast.AsyncFunctionDef: _define,
    ast.ClassDef: _define_class,
    ast.If: _if,
    ast.Try: _try,
    getattr(ast, "TryStar", ast.Try): _try,  # since Python 3.11
    ast.For: _for,
    ast.AsyncFor: _for,
    ast.While: _while,
    ast.With: _with,
    ast.AsyncWith: _with,
    ast.Return: _return,
    ast.Raise: _raise,
    ast.Continue: _end_block,
    ast.Break: _end_block,
    ast.Assert: _assert,
    ast.Match: _match,
}
