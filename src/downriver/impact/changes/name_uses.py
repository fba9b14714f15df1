"""The names in a file that may be tables, macros or modules of other files.

The result may contain names that the code does not use, but it contains every name in the text.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import cached_property
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from downriver.capture.code.dbt_resources import (
    blank_jinja_comments,
    blank_resources,
    has_computed_resources,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

_WORD = re.compile(r"\w+")
_PART = re.compile(r"[^\W_]+")
_CALL = re.compile(r"\b(\w+)\s*\(")
_MACRO = re.compile(r"\{%-?\s*(?:macro|test|materialization)\s+(\w+)")
_END = re.compile(r"\{%-?\s*end(?:macro|test|materialization)\b")
_IMPORT = re.compile(
    r"^[^\w\n]*(?:from|import)\s[^\n(]*(?:\((?:[^()#]|#[^\n]*\n)*\))?", re.MULTILINE
)
_DYNAMIC = re.compile(r"\{[{%]|~|\$\{|%\(|\|\|")  # in SQL: names may be composed of parts
_TAG = re.compile(r"\{\{.*?(?:\}\}|\Z)|\{%.*?(?:%\}|\Z)", re.DOTALL)
_TOUCHING = re.compile(r"\b\w+(?=[{$%&@])|(?<=[}@])\w+|(?<=\)s)\w+")  # text next to a placeholder
_STRING = re.compile(r"'(?:[^'\\]|\\.|'')*'", re.DOTALL)
_PYTHON_STRING = re.compile(
    r"#[^\n]*"
    r"|(\"\"\".*?(?:\"\"\"|\Z)|'''.*?(?:'''|\Z)|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*')",
    re.DOTALL,
)
_SQL_TOKEN = re.compile(
    r"--(?:(?!\{[{%])[^\n])*|/\*(?:(?!\*/|/\*).)*\*/"
    r"|(?P<tag>\{\{.*?(?:\}\}|\Z)|\{%.*?(?:%\}|\Z))"
    r"|(?P<string>'(?:[^'\\]|\\.|'')*')"
    r"|(?P<word>\w+)"
    r"|(?P<mark>[(),;])",
    re.DOTALL,
)
_TABLES_FOLLOW = frozenset({
    "from", "join", "into", "update", "using", "table", "view", "merge", "copy", "insert", "delete",
    "overwrite", "with", "union", "intersect", "except", "minus",
})  # fmt: skip
_COLUMNS_FOLLOW = frozenset({"select", "where", "by", "having", "qualify", "set"})


class _Clause(Enum):
    """The part of a statement that a word is in."""

    TABLES = "tables"
    COLUMNS = "columns"
    CONDITION = "condition"  # of a join: another table may follow a comma


class CarriedNames(NamedTuple):
    """Names under which other files use what a file reads, case-folded."""

    tables: frozenset[str] = frozenset()
    macros: frozenset[str] = frozenset()
    modules: frozenset[str] = frozenset()

    def __or__(self, other: CarriedNames) -> CarriedNames:
        """Return the names of both."""
        return CarriedNames(*(mine | more for mine, more in zip(self, other, strict=True)))

    def minus(self, other: CarriedNames) -> CarriedNames:
        """Return the names that are not in the other."""
        return CarriedNames(*(mine - less for mine, less in zip(self, other, strict=True)))


class NameUses:
    """The names that a text uses. The costly ones are computed on first use."""

    def __init__(self, path: str, text: str) -> None:
        self._suffix = PurePosixPath(path).suffix.lower()
        self._text = text.casefold()

    def mentions(
        self, names: CarriedNames, parts: Iterable[frozenset[str]], fragments: frozenset[str]
    ) -> bool:
        """Return whether the text may use one of these names.

        `parts` are the parts of table names. `fragments` come from the macros that the text calls.
        """
        if self._suffix in (".yml", ".yaml"):
            return not self.words.isdisjoint(names.tables | names.macros)
        if not names.modules.isdisjoint(self.modules):
            return True
        if not names.macros.isdisjoint(self.calls):
            return True
        if not self.words.isdisjoint(names.tables) and not self.tables.isdisjoint(names.tables):
            return True
        known = self.fragments | fragments
        return any(len(part) > 1 and part <= known for part in parts)

    @cached_property
    def words(self) -> frozenset[str]:
        """Every word."""
        return frozenset(_WORD.findall(self._text))

    @cached_property
    def modules(self) -> frozenset[str]:
        """Every word in an import of Python."""
        if self._suffix not in (".py", ".ipynb"):
            return frozenset()
        return frozenset(list_imports(self._text))

    @cached_property
    def calls(self) -> frozenset[str]:
        """Every name that a template calls."""
        if "{" not in self._text or self._suffix == ".py":
            return frozenset()
        return frozenset(_CALL.findall(self._text)) | _words_of(_TAG.findall(self._text))

    @cached_property
    def tables(self) -> frozenset[str]:
        """Every word that may be the name of a table."""
        match self._suffix:
            case ".py":
                return _words_of(_PYTHON_STRING.findall(self._text))
            case ".ipynb":
                return self.words
            case _:
                words = _table_words(self._text)
                return self.words if words is None else words

    @property
    def has_computed_resources(self) -> bool:
        """Whether an argument of `ref` or `source` is computed."""
        return has_computed_resources(self._text)

    @cached_property
    def fragments(self) -> frozenset[str]:
        """The parts of words from which the code may compose table names."""
        match self._suffix:
            case ".py":
                return _parts_of(_PYTHON_STRING.findall(self._text))
            case ".ipynb":
                return frozenset(_PART.findall(self._text))
            case _ if _DYNAMIC.search(self._text) is not None:
                text = blank_resources(blank_jinja_comments(self._text))
                return _parts_of(
                    _TAG.findall(text) + _STRING.findall(text) + _TOUCHING.findall(text)
                )
            case _:
                return frozenset()


def list_parts(name: str) -> frozenset[str]:
    """Return the parts of a name, between its underscores."""
    return frozenset(_PART.findall(name))


def list_calls(text: str) -> set[str]:
    """Return every name before a bracket."""
    return set(_CALL.findall(text))


def list_imports(text: str) -> set[str]:
    """Return every word of the imports of a module."""
    return set(_words_of(_IMPORT.findall(text)))


def list_macros(text: str) -> set[str]:
    """Return the names of the macros, generic tests and materializations in a file."""
    return set(_MACRO.findall(text))


def split_macros(text: str) -> dict[str, str]:
    """Return the text of each macro in a file. Text outside of the macros is added to each one."""
    bodies: dict[str, str] = {}
    outside, end = [], 0
    for start in _MACRO.finditer(text):
        if start.start() < end:
            continue
        closing = _END.search(text, start.end())
        outside.append(text[end : start.start()])
        end = closing.end() if closing is not None else len(text)
        bodies[start[1]] = bodies.get(start[1], "") + text[start.end() : end]
    shared = " ".join([*outside, text[end:]])
    return {name: body + shared for name, body in bodies.items()}


def macro_names(name: str) -> frozenset[str]:
    """Return the names by which a macro is called: `x` also for `snowflake__x`."""
    return frozenset({name, name.partition("__")[2]} - {""})


def _words_of(texts: list[str]) -> frozenset[str]:
    return frozenset(word for text in texts for word in _WORD.findall(text))


def _parts_of(texts: list[str]) -> frozenset[str]:
    return frozenset(part for text in texts for part in _PART.findall(text))


def _table_words(sql: str) -> frozenset[str] | None:
    """Return the words of SQL that are not in a list of columns; None if its form is unclear."""
    words: set[str] = set()
    outer: list[_Clause] = []
    clause, before = _Clause.TABLES, ""
    for token in _SQL_TOKEN.finditer(blank_jinja_comments(sql)):
        value = token[0]
        match token.lastgroup:
            case "tag" | "string":
                if token.lastgroup == "string" and "\n" in value:
                    return None  # an apostrophe may look like the start of a string
                words.update(_WORD.findall(value))
            case "word" if value in _TABLES_FOLLOW:
                words.add(value)
                clause = _Clause.TABLES
            case "word" if value in _COLUMNS_FOLLOW:
                clause = _Clause.COLUMNS
            case "word" if value == "on":
                clause = _Clause.CONDITION
            case "word" if clause is _Clause.TABLES:
                words.add(value)
            case "mark" if value == "(":
                outer.append(clause)
                clause = _Clause.COLUMNS if before == "using" else clause
            case "mark" if value == ")":
                if not outer:
                    return None
                clause = outer.pop()
            case "mark" if value == ";" or clause is _Clause.CONDITION:
                clause = _Clause.TABLES
            case _:
                pass  # a comment, a comma between columns
        before = value
    return None if outer else frozenset(words)
