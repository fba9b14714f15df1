"""Parses Python, including code for newer versions than the running one."""

from __future__ import annotations

import ast
import re

# Python 3.12: `type Name[T] = …`, `def name[T](…)` and `class Name[T]:`.
_TYPE_ALIAS = re.compile(
    r"^([ \t]*)type[ \t]+(\w+)[ \t]*(?:\[[^\]\n]*\][ \t]*)?=(?!=)", re.MULTILINE
)
_TYPE_PARAMETERS = re.compile(
    r"^([ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+\w+)\[[^\n]*?\](?=[ \t]*[(:])", re.MULTILINE
)


def parse_python(source: str, path: str = "<unknown>") -> ast.Module:
    """Return the syntax tree of a module, without type parameters. Raises SyntaxError."""
    try:
        return ast.parse(source, filename=path)
    except ValueError as exc:  # null bytes, before Python 3.12
        raise SyntaxError(str(exc)) from exc
    except SyntaxError:
        older = _TYPE_PARAMETERS.sub(r"\1", _TYPE_ALIAS.sub(r"\1\2 =", source))
        if older == source:
            raise
    return ast.parse(older, filename=path)
