"""Renders SQL templates (Jinja, dbt) without dbt.

A value that only a run knows is marked as unknown, never guessed. A template that branches on such
a value, as `is_incremental()` is, is rendered twice: once with false, once with true.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from downriver.capture.sql.limits import OverLimitError
from downriver.capture.sql.result import SqlBlindSpot
from downriver.capture.sql.templates.dbt import (
    TemplateTable,
    TemplateUnknown,
    bind_unknown,
    dbt_globals,
)
from downriver.capture.sql.templates.sandbox import TEMPLATE_FAULTS, Sandbox

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from downriver.capture.sql.limits import Budget

_MOST_TAGS = 50_000


class Template(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a template's surroundings.

    `this` is the table the template builds. `names` say which table a `ref('model')` or a
    `source('raw', 'orders')` (as `raw.orders`) is, where it is not called the same. `variables` are
    those of `var()`; `macros` are the texts of macro files.
    """

    this: str = ""
    names: dict[str, str] = {}
    variables: dict[str, Any] = {}
    macros: tuple[str, ...] = ()


class RenderedTemplate(msgspec.Struct, kw_only=True):
    """A template as SQL: one text, or two that differ in what only a run can tell.

    `tables` are all that were referred to, also where the text does not show it.
    """

    texts: list[str]
    tables: list[str]
    blind_spots: list[SqlBlindSpot]


def render_template(sql: str, template: Template, budget: Budget) -> RenderedTemplate:
    """Return the SQL of a template, as far as it can be known."""
    first = _Rendering(sql, template, budget, answer=False)
    texts = [first.text()]
    found = first.notes
    if first.asked:
        second = _Rendering(sql, template, budget, answer=True)
        text = second.text()
        found.merge(second.notes)
        if text != texts[0]:
            texts.append(text)
    spots = [
        SqlBlindSpot("template", message, _line_of(sql, word))
        for message, word in found.unknown.items()
    ]
    return RenderedTemplate(texts=texts, tables=list(found.tables), blind_spots=spots)


def _line_of(sql: str, word: str) -> int:
    at = sql.find(word) if word else -1
    return sql.count("\n", 0, at) + 1 if at >= 0 else 1


class TemplateNotes:
    """What came up while rendering: tables referred to, and what could not be known."""

    def __init__(self) -> None:
        self.tables: dict[str, None] = {}
        self.unknown: dict[str, str] = {}  # from what to say to the word it is about

    def merge(self, other: TemplateNotes) -> None:
        """Add what came up another time."""
        self.tables.update(other.tables)
        self.unknown.update(other.unknown)


class _Rendering:
    """One rendering, in which every question only a run can answer gets the same answer."""

    def __init__(self, sql: str, template: Template, budget: Budget, *, answer: bool) -> None:
        self._sql = sql
        self._template = template
        self._budget = budget
        self.answer = answer
        self.asked = False
        self.notes = TemplateNotes()

    # What dbt_names needs to know

    def ask(self) -> bool:
        """Answer a question that only a run can."""
        self.asked = True
        return self.answer

    def table(self, key: str, name: str) -> TemplateTable:
        """Return the table a reference means, and remember it."""
        full = self._template.names.get(key, name)
        self.notes.tables[full] = None
        return TemplateTable(full)

    def this(self) -> TemplateTable:
        """Return the table that is being built."""
        if not self._template.this:
            self.unknown("the name of the table this template builds is not known", "this")
        return TemplateTable(self._template.this or "this")

    def variable(self, name: str, default: Any = None) -> Any:
        """Return a variable's value, its default, or its name as a mark."""
        if name in self._template.variables:
            return self._template.variables[name]
        if default is not None:
            return default
        self.unknown(f"the variable {name} has no value", name)
        return TemplateUnknown(self, name, noted=True)

    def unknown(self, message: str, word: str) -> None:
        """Remember something that could not be known."""
        self.notes.unknown.setdefault(message, word)

    # Rendering

    def text(self) -> str:
        """Return the text; where rendering fails, one with marks in place of all of Jinja."""
        try:
            if len(self._sql) > self._budget.limits.characters or _has_too_many_tags(self._sql):
                raise OverLimitError("it is too long")  # noqa: TRY301
            return self._render()
        except OverLimitError as exc:
            self.unknown(f"the template takes too much: {exc}", "")
        except TEMPLATE_FAULTS as exc:
            self.unknown(f"the template cannot be rendered: {exc}", "")
        return strip_jinja(self._sql)

    def _render(self) -> str:
        environment = Sandbox(self._budget, bind_unknown(self))
        environment.globals.update(dbt_globals(self))
        environment.add_macros([strip_dbt_blocks(text) for text in self._template.macros])
        tree = environment.parse_counted(strip_dbt_blocks(keep_line_numbers(self._sql)))
        pieces: list[str] = []
        length = 0
        for piece in map(str, environment.from_string(tree).generate()):
            length += len(piece)
            self._budget.spend()
            if length > self._budget.limits.characters:
                raise OverLimitError("it renders to too much text")
            pieces.append(piece)
        return "".join(pieces)


def _has_too_many_tags(text: str) -> bool:
    return next(islice(find_tags(text), _MOST_TAGS, None), None) is not None


_OPENS = re.compile(r"\{[{%#]")
_CLOSERS = {"{{": "}}", "{%": "%}", "{#": "#}"}
_REFERENCE = re.compile(r"\{\{-?\s*(?:ref|source)\s*\(([^()]*)\)\s*-?\}\}")
_BLOCK = re.compile(r"\{%[-+]?\s*(\w+)")
_TEST = re.compile(r"\{%[-+]?\s*(?:test|data_test)\s+(\w+)")

# Blocks that dbt adds to Jinja and that make no rows.
_LEFT_OUT = frozenset({"materialization", "docs"})
_MARK = "unknown_template"


def find_tags(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the tags and comments of a template begin and end."""
    at = 0
    unclosed: set[str] = set()  # kinds of which no more are closed: looking again would take long
    while (found := _OPENS.search(text, at)) is not None:
        kind = found.group()
        end = -1 if kind in unclosed else text.find(_CLOSERS[kind], found.end())
        if end < 0:
            unclosed.add(kind)
            at = found.end()
            if len(unclosed) == len(_CLOSERS):
                return
        else:
            at = end + 2
            yield found.start(), at


def is_template(text: str) -> bool:
    """Return whether a text has Jinja in it."""
    return "{" in text and next(find_tags(text), None) is not None


def replace_tags(text: str, replaced: Callable[[str], str]) -> str:
    """Return a template with each tag replaced."""
    pieces: list[str] = []
    at = 0
    for start, end in find_tags(text):
        pieces += (text[at:start], replaced(text[start:end]))
        at = end
    return "".join([*pieces, text[at:]])


def keep_line_numbers(text: str) -> str:
    """Return a template whose tags of several lines leave as many: errors keep their line."""
    return replace_tags(text, lambda tag: tag + "\n" * tag.count("\n"))


def strip_jinja(text: str) -> str:
    """Return a template with tables where they are plain to see, and marks for the rest."""
    return replace_tags(text, _plain)


def _plain(tag: str) -> str:
    kept = "\n" * tag.count("\n")
    reference = _REFERENCE.match(tag)
    if reference is not None:
        return ".".join(re.findall(r"['\"]([^'\"]+)", reference.group(1))) + kept
    return _MARK + kept if tag.startswith("{{") else kept


def strip_dbt_blocks(text: str) -> str:
    """Return a template with the blocks that dbt adds to Jinja as Jinja, or as nothing."""
    pieces: list[str] = []
    at = 0
    skipping = ""  # the block that is left out until it ends
    for start, end in find_tags(text):
        tag = text[start:end]
        block = _BLOCK.match(tag)
        name = block.group(1) if block is not None else ""
        if skipping:
            skipping = "" if name == f"end{skipping}" else skipping
        else:
            pieces.append(text[at:start])
            skipping = name if name in _LEFT_OUT else ""
            pieces.append("" if skipping else _as_jinja(tag, name))
        at = end
    return "".join([*pieces, "" if skipping else text[at:]])


def _as_jinja(tag: str, name: str) -> str:
    if name in ("snapshot", "endsnapshot"):
        return ""
    if name in ("test", "data_test"):
        return _TEST.sub(r"{% macro test_\1", tag, count=1)
    return "{% endmacro %}" if name in ("endtest", "enddata_test") else tag
