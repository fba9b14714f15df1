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

_MAX_TAGS = 50_000


class Template(msgspec.Struct, frozen=True, kw_only=True):
    """The context of a template.

    `this` is the table that the template builds. `names` maps the arguments of `ref('model')` and
    `source('raw', 'orders')` (as `raw.orders`) to table names where they differ. `variables` are
    the values of `var()`; `macros` are the texts of macro files.
    """

    this: str = ""
    names: dict[str, str] = {}
    variables: dict[str, Any] = {}
    macros: tuple[str, ...] = ()


class RenderedTemplate(msgspec.Struct, kw_only=True):
    """A rendered template: one text, or two that differ in values known only at run time.

    `tables` are all tables that the template refers to, also those that the text does not contain.
    """

    texts: list[str]
    tables: list[str]
    blind_spots: list[SqlBlindSpot]


def render_template(sql: str, template: Template, budget: Budget) -> RenderedTemplate:
    """Return the SQL of a template, as far as it is known without a run."""
    first = _Rendering(sql, template, budget, condition=False)
    texts = [first.text()]
    found = first.notes
    if first.has_branched:
        second = _Rendering(sql, template, budget, condition=True)
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
    """What a rendering found: the tables it refers to, and the values it does not know."""

    def __init__(self) -> None:
        self.tables: dict[str, None] = {}
        self.unknown: dict[str, str] = {}  # from message to the word it is about

    def merge(self, other: TemplateNotes) -> None:
        """Add the findings of another rendering."""
        self.tables.update(other.tables)
        self.unknown.update(other.unknown)


class _Rendering:
    """One rendering. Every condition that only a run knows has the same value."""

    def __init__(self, sql: str, template: Template, budget: Budget, *, condition: bool) -> None:
        self._sql = sql
        self._template = template
        self._budget = budget
        self.condition = condition
        self.has_branched = False
        self.notes = TemplateNotes()

    # TemplateRendering, for the names that dbt defines

    def branch(self) -> bool:
        """Return the value of a condition that only a run knows."""
        self.has_branched = True
        return self.condition

    def table(self, key: str, name: str) -> TemplateTable:
        """Return the table of a reference, and record it."""
        full = self._template.names.get(key, name)
        self.notes.tables[full] = None
        return TemplateTable(full)

    def this(self) -> TemplateTable:
        """Return the table that the template builds."""
        if not self._template.this:
            self.unknown("the name of the table that the template builds is unknown", "this")
        return TemplateTable(self._template.this or "this")

    def variable(self, name: str, default: Any = None) -> Any:
        """Return a variable's value, its default, or an unknown value."""
        if name in self._template.variables:
            return self._template.variables[name]
        if default is not None:
            return default
        self.unknown(f"the variable {name} is unknown", name)
        return TemplateUnknown(self, name, noted=True)

    def unknown(self, message: str, word: str) -> None:
        """Record an unknown value."""
        self.notes.unknown.setdefault(message, word)

    # Rendering

    def text(self) -> str:
        """Return the rendered text; if rendering fails, the text with placeholders for tags."""
        try:
            if len(self._sql) > self._budget.limits.characters or _has_too_many_tags(self._sql):
                raise OverLimitError("it is too long")  # noqa: TRY301
            return self._render()
        except OverLimitError as exc:
            self.unknown(f"the template exceeds a limit: {exc}", "")
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
    return next(islice(find_tags(text), _MAX_TAGS, None), None) is not None


_OPENS = re.compile(r"\{[{%#]")
_CLOSERS = {"{{": "}}", "{%": "%}", "{#": "#}"}
_REFERENCE = re.compile(r"\{\{-?\s*(?:ref|source)\s*\(([^()]*)\)\s*-?\}\}")
_BLOCK = re.compile(r"\{%[-+]?\s*(\w+)")
_TEST = re.compile(r"\{%[-+]?\s*(?:test|data_test)\s+(\w+)")

# Blocks that dbt adds to Jinja and that return no rows.
_REMOVED_BLOCKS = frozenset({"materialization", "docs"})
_PLACEHOLDER = "unknown_template"


def find_tags(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each tag and comment of a template."""
    at = 0
    unclosed: set[str] = set()  # kinds with no closing tag left, not searched again
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
    """Return whether a text contains Jinja."""
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
    """Add line breaks after tags of several lines, so that rendered text keeps its line numbers."""
    return replace_tags(text, lambda tag: tag + "\n" * tag.count("\n"))


def strip_jinja(text: str) -> str:
    """Replace references by their tables, and all other tags by placeholders."""
    return replace_tags(text, _plain_text)


def _plain_text(tag: str) -> str:
    kept = "\n" * tag.count("\n")
    reference = _REFERENCE.match(tag)
    if reference is not None:
        return ".".join(re.findall(r"['\"]([^'\"]+)", reference.group(1))) + kept
    return _PLACEHOLDER + kept if tag.startswith("{{") else kept


def strip_dbt_blocks(text: str) -> str:
    """Replace the blocks that dbt adds to Jinja by plain Jinja, or remove them."""
    pieces: list[str] = []
    at = 0
    skipping = ""  # the block that is being removed
    for start, end in find_tags(text):
        tag = text[start:end]
        block = _BLOCK.match(tag)
        name = block.group(1) if block is not None else ""
        if skipping:
            skipping = "" if name == f"end{skipping}" else skipping
        else:
            pieces.append(text[at:start])
            skipping = name if name in _REMOVED_BLOCKS else ""
            pieces.append("" if skipping else _as_jinja(tag, name))
        at = end
    return "".join([*pieces, "" if skipping else text[at:]])


def _as_jinja(tag: str, name: str) -> str:
    if name in ("snapshot", "endsnapshot"):
        return ""
    if name in ("test", "data_test"):
        return _TEST.sub(r"{% macro test_\1", tag, count=1)
    return "{% endmacro %}" if name in ("endtest", "enddata_test") else tag
