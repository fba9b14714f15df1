"""sqlglot's parser within limits: it returns what is wrong, and raises nothing."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING

from sqlglot import exp
from sqlglot.errors import ErrorLevel, ParseError, TokenError

from downriver.capture.sql.parsed import Parsed
from downriver.capture.sql.result import SqlBlindSpot
from downriver.capture.sql.tokens import check_nesting, text_of, tokenize

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlglot.dialects.dialect import Dialect
    from sqlglot.tokens import Token

    from downriver.capture.sql.limits import Budget

logging.getLogger("sqlglot").setLevel(logging.ERROR)  # we report what it cannot read ourselves

_CLASS = re.compile(r"<class '[\w.]*?(\w+)'>")
_NODES_A_TOKEN = 50  # far more than any statement has: what exceeds it goes round in circles
# Malformed input takes sqlglot's own code by surprise now and then.
_PARSER_FAULTS = (
    AssertionError,
    AttributeError,
    IndexError,
    KeyError,
    TokenError,
    TypeError,
    ValueError,
)


class Parser:
    """Parses single statements, in one dialect unless told another."""

    def __init__(self, dialect: Dialect, budget: Budget) -> None:
        self._dialect = dialect
        self._budget = budget

    def parse(
        self, tokens: list[Token], sql: str, dialect: Dialect | None = None
    ) -> Parsed | SqlBlindSpot:
        """Return the tree of one statement, or what is wrong with it."""
        line = tokens[0].line if tokens else 1
        dialect = dialect or self._dialect
        limits = self._budget.limits
        too_deep = check_nesting(tokens, dialect, limits.nesting)
        if too_deep is not None:
            return SqlBlindSpot("too_deep", too_deep, line)
        nodes = min(limits.nodes, 1_000 + _NODES_A_TOKEN * len(tokens))
        try:
            parser = dialect.parser(error_level=ErrorLevel.IMMEDIATE, max_nodes=nodes)
            trees = parser.parse(tokens, sql)
        except ParseError as exc:
            return _problem(exc, line)
        except RecursionError:
            return SqlBlindSpot("too_deep", "the statement is nested too deeply", line)
        except _PARSER_FAULTS as exc:
            return SqlBlindSpot("unparsed", f"the parser failed: {exc!r}", line)
        return Parsed(text_of(tokens, sql), line, _only(trees))

    def parse_text(self, text: str, dialect: Dialect) -> Parsed | None:
        """Return the statement a text is in a dialect, None when it is none."""
        try:
            attempt = self.parse(tokenize(text, dialect), text, dialect)
        except TokenError:
            return None
        return attempt if isinstance(attempt, Parsed) and is_statement(attempt.tree) else None


def is_statement(tree: exp.Expression | None) -> bool:
    """Return whether a tree is a statement, and not merely an expression or unread words."""
    if tree is None or isinstance(tree, (exp.Command, exp.Condition, exp.Alias, exp.Aliases)):
        return isinstance(tree, (exp.Query, exp.Values))
    return not isinstance(tree, (exp.Identifier, exp.Func)) or isinstance(tree, exp.Values)


def _only(trees: Sequence[exp.Expression | None]) -> exp.Expression | None:
    return trees[0] if trees else None


def _problem(exc: ParseError, line: int) -> SqlBlindSpot:
    first = exc.errors[0] if exc.errors else {}
    message = _CLASS.sub(r"\1", str(first.get("description") or exc).splitlines()[0])
    if message.startswith("Maximum number of AST nodes"):
        return SqlBlindSpot(
            "too_large", "the statement is too large or goes round in circles", line
        )
    return SqlBlindSpot("unparsed", message, first.get("line") or line, first.get("col") or 0)
