"""SQL templates (Jinja, dbt) into SQL, without dbt: what cannot be known is marked, never guessed.

A template is rendered twice when it asks a question only a run can answer, such as
`is_incremental()`: once with every such answer "no", once with "yes". Both texts are read.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from downriver.capture.sql.dbt_names import Relation, Unknown, dbt_globals, unknown_in
from downriver.capture.sql.jinja_sandbox import TEMPLATE_FAULTS, Sandbox
from downriver.capture.sql.jinja_tags import (
    find_tags,
    with_lines_kept,
    without_dbt_blocks,
    without_jinja,
)
from downriver.capture.sql.limits import OverLimitError
from downriver.capture.sql.result import SqlBlindSpot

if TYPE_CHECKING:
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


class Rendered(msgspec.Struct, kw_only=True):
    """A template as SQL: one text, or two that differ in what only a run can tell.

    `tables` are all that were referred to, also where the text does not show it.
    """

    texts: list[str]
    tables: list[str]
    blind_spots: list[SqlBlindSpot]


def render_template(sql: str, template: Template, budget: Budget) -> Rendered:
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
    return Rendered(texts=texts, tables=list(found.tables), blind_spots=spots)


def _line_of(sql: str, word: str) -> int:
    at = sql.find(word) if word else -1
    return sql.count("\n", 0, at) + 1 if at >= 0 else 1


class Notes:
    """What came up while rendering: tables referred to, and what could not be known."""

    def __init__(self) -> None:
        self.tables: dict[str, None] = {}
        self.unknown: dict[str, str] = {}  # from what to say to the word it is about

    def merge(self, other: Notes) -> None:
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
        self.notes = Notes()

    # What dbt_names needs to know

    def ask(self) -> bool:
        """Answer a question that only a run can."""
        self.asked = True
        return self.answer

    def table(self, key: str, name: str) -> Relation:
        """Return the table a reference means, and remember it."""
        full = self._template.names.get(key, name)
        self.notes.tables[full] = None
        return Relation(full)

    def this(self) -> Relation:
        """Return the table that is being built."""
        if not self._template.this:
            self.unknown("the name of the table this template builds is not known", "this")
        return Relation(self._template.this or "this")

    def variable(self, name: str, default: Any = None) -> Any:
        """Return a variable's value, its default, or its name as a mark."""
        if name in self._template.variables:
            return self._template.variables[name]
        if default is not None:
            return default
        self.unknown(f"the variable {name} has no value", name)
        return Unknown(self, name, noted=True)

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
        return without_jinja(self._sql)

    def _render(self) -> str:
        environment = Sandbox(self._budget, unknown_in(self))
        environment.globals.update(dbt_globals(self))
        environment.add_macros([without_dbt_blocks(text) for text in self._template.macros])
        tree = environment.parse_counted(without_dbt_blocks(with_lines_kept(self._sql)))
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
