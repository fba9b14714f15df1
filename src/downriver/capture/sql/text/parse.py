"""Parses one statement with sqlglot within limits."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, NamedTuple

from sqlglot import exp
from sqlglot.errors import ErrorLevel, ParseError, TokenError
from sqlglot.tokens import TokenType

from downriver.capture.sql.result import SqlBlindSpot
from downriver.capture.sql.text.tokens import check_nesting, source_text, tokenize, words_of
from downriver.capture.sql.text.variables import is_unnamed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlglot.dialects.dialect import Dialect
    from sqlglot.tokens import Token

    from downriver.capture.sql.limits import Budget
    from downriver.capture.sql.statements.context import StatementEffect
    from downriver.columns import TableName


class ScriptStatement(NamedTuple):
    """A statement of a script, parsed if possible.

    It has a `tree`, or an `effect` if its tokens are enough to determine it, or neither. `target`
    is the file that a query's result is written to. `row` is the name of the row in a loop over the
    query. `trigger` is the table of a trigger, whose body follows.

    `tokens` are those of the statement, and `part` those of the text between semicolons that it was
    found in. Both begin `lines_before` lines after the beginning of the script.
    """

    sql: str
    line: int
    tree: exp.Expression | None = None
    kind: str = "UNKNOWN"
    effect: StatementEffect | None = None
    target: TableName | None = None
    inputs: tuple[TableName, ...] = ()
    outputs: tuple[TableName, ...] = ()
    blind_spots: tuple[SqlBlindSpot, ...] = ()
    routine: str = ""
    row: str = ""
    trigger: TableName | None = None
    tokens: Sequence[Token] = ()
    part: Sequence[Token] = ()
    lines_before: int = 0


logging.getLogger("sqlglot").setLevel(logging.ERROR)  # its warnings become blind spots

_BEFORE_READ = frozenset({"FROM", "JOIN", "USING"})
_CLASS = re.compile(r"<class '(?:\w+\.)*(\w+)'>")
_NODES_PER_TOKEN = 50  # far more than any statement needs: a parser that takes more is in a loop
# sqlglot raises these on some malformed input.
_PARSER_FAULTS = (
    AssertionError,
    AttributeError,
    IndexError,
    KeyError,
    TokenError,
    TypeError,
    ValueError,
)


class StatementParser:
    """Parses single statements, in its own dialect or in another."""

    def __init__(self, dialect: Dialect, budget: Budget) -> None:
        self._dialect = dialect
        self._budget = budget

    def parse(
        self, tokens: list[Token], sql: str, dialect: Dialect | None = None
    ) -> ScriptStatement | SqlBlindSpot:
        """Return a statement with its tree, or the reason why it does not parse."""
        line = tokens[0].line if tokens else 1
        dialect = dialect or self._dialect
        limits = self._budget.limits
        too_deep = check_nesting(tokens, dialect, limits.nesting)
        if too_deep is not None:
            return SqlBlindSpot("too_deep", too_deep, line)
        nodes = min(limits.nodes, 1_000 + _NODES_PER_TOKEN * len(tokens))
        try:
            parser = dialect.parser(error_level=ErrorLevel.IMMEDIATE, max_nodes=nodes)
            trees = parser.parse(tokens, sql)
        except ParseError as exc:
            return _problem(exc, line)
        except RecursionError:
            return SqlBlindSpot("too_deep", "the statement is nested too deeply", line)
        except _PARSER_FAULTS as exc:
            return SqlBlindSpot("unparsed", f"the parser failed: {exc!r}", line)
        tree = _only(trees)
        spots = tuple(_unnamed_tables(tokens, tree)) if tree is not None else ()
        return ScriptStatement(source_text(tokens, sql), line, tree, blind_spots=spots)

    def parse_text(self, text: str, dialect: Dialect) -> ScriptStatement | None:
        """Return a text parsed in another dialect, None when it does not parse."""
        try:
            attempt = self.parse(tokenize(text, dialect), text, dialect)
        except TokenError:
            return None
        return (
            attempt if isinstance(attempt, ScriptStatement) and is_statement(attempt.tree) else None
        )


def _unnamed_tables(tokens: list[Token], tree: exp.Expression) -> Iterator[SqlBlindSpot]:
    """Yield a blind spot for each table that is read and whose name is a placeholder."""
    if not any(token.token_type == TokenType.PLACEHOLDER for token in tokens):
        return
    message = "the table that is read is known only at run time"
    words = words_of(tokens)
    places = [
        token
        for at, token in enumerate(tokens)
        if token.token_type == TokenType.PLACEHOLDER
        and words[at - 1] in _BEFORE_READ
        and "DELETE" not in words[max(0, at - 2) : at]
    ]
    for token in places:
        yield SqlBlindSpot("dynamic_name", message, token.line, token.col)
    read = sum(
        is_unnamed(table.this) and isinstance(table.parent, (exp.From, exp.Join))
        for table in tree.find_all(exp.Table)
    )
    if read > len(places):  # FROM orders, ?
        yield SqlBlindSpot("dynamic_name", message, tokens[0].line)


def is_statement(tree: exp.Expression | None) -> bool:
    """Return whether a tree is a statement, and not only an expression or unparsed text."""
    if tree is None or isinstance(tree, (exp.Command, exp.Condition, exp.Alias, exp.Aliases)):
        return isinstance(tree, (exp.Query, exp.Values))
    return not isinstance(tree, (exp.Identifier, exp.Func)) or isinstance(tree, exp.Values)


def _only(trees: Sequence[exp.Expression | None]) -> exp.Expression | None:
    return trees[0] if trees else None


def _problem(exc: ParseError, line: int) -> SqlBlindSpot:
    first = exc.errors[0] if exc.errors else {}
    message = _CLASS.sub(r"\1", str(first.get("description") or exc).splitlines()[0])
    if message.startswith("Maximum number of AST nodes"):
        return SqlBlindSpot("too_large", "the statement is too large to parse", line)
    return SqlBlindSpot("unparsed", message, first.get("line") or line, first.get("col") or 0)
