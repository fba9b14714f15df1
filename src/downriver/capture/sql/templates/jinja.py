"""Renders SQL templates (Jinja, dbt) without dbt.

A value known only at run time is marked as unknown, never guessed. A template that branches on such
a value, for example `is_incremental()`, is rendered for both outcomes.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from downriver.capture.sql.limits import OverLimitError
from downriver.capture.sql.result import SqlBlindSpot
from downriver.capture.sql.templates.dbt import MacroReturnError
from downriver.capture.sql.templates.macros import get_environment
from downriver.capture.sql.templates.sandbox import TEMPLATE_FAULTS
from downriver.capture.sql.templates.tags import (
    find_tags,
    keep_line_numbers,
    strip_dbt_blocks,
    strip_jinja,
)
from downriver.capture.sql.templates.unknown import TemplateTable, TemplateUnknown, split_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from downriver.capture.sql.limits import Budget
    from downriver.capture.sql.templates.macros import MacroEnvironment

_MAX_TAGS = 50_000
_MAX_RENDERINGS = 8
_NO_PACKAGES: dict[str, tuple[str, ...]] = {}


class Template(msgspec.Struct, frozen=True, kw_only=True):
    """The context of a template.

    `this` is the table that the template builds. `names` maps the arguments of `ref('model')` and
    `source('raw', 'orders')` (as `raw.orders`) to table names where they differ. `variables` are
    the values of `var()`; `macros` are the texts of macro files, `packages` those of installed
    packages by their names. `adapter` is `target.type`. `columns_of` returns the known columns of a
    table. `settings` are the options of the template in other files, for `config.get()`. `exact`:
    the SQL will be run, so a value that is only approximately right counts as unknown.
    """

    this: str = ""
    names: dict[str, str] = {}
    variables: dict[str, Any] = {}
    macros: tuple[str, ...] = ()
    packages: dict[str, tuple[str, ...]] = _NO_PACKAGES
    adapter: str = ""
    columns_of: Any = None
    settings: dict[str, Any] = {}
    exact: bool = False


class RenderedTemplate(msgspec.Struct, kw_only=True):
    """A rendered template: one text, or several that differ in values known only at run time.

    `tables` are all tables that the template refers to, also those that the text does not contain.
    `config` are the options of its calls of `config`, `conditions` those known only at run time.
    `executed` are the statements that it runs while it is rendered.
    """

    texts: list[str]
    tables: list[str]
    blind_spots: list[SqlBlindSpot]
    config: dict[str, Any] = {}
    conditions: list[str] = []
    executed: list[str] = []


def render_template(sql: str, template: Template, budget: Budget) -> RenderedTemplate:
    """Return the SQL of a template, as far as it is known without a run.

    The last text takes all branches that depend on run-time values, so it has the most SQL.
    """
    environment = get_environment(template.macros, template.packages)
    notes = TemplateNotes()
    texts: dict[str, None] = {}
    waiting: list[frozenset[str]] = [frozenset()]
    conditions: dict[str, None] = {}
    renderings = 0
    while waiting and renderings < _MAX_RENDERINGS:
        rendering = _Rendering(sql, template, environment, budget, waiting.pop(0))
        texts[rendering.text()] = None
        notes.merge(rendering.notes)
        renderings += 1
        # Each condition is true in one rendering, together with the conditions around it.
        for condition in rendering.conditions:
            if condition not in conditions:
                conditions[condition] = None
                waiting.append(rendering.true_conditions | {condition})
    if waiting:
        notes.unknown.setdefault("too many conditions depend on the run", ("", ""))
    if len(conditions) > 1:
        rendering = _Rendering(sql, template, environment, budget, None)
        last = rendering.text()
        notes.merge(rendering.notes)
        texts.pop(last, None)
        texts[last] = None
    spots = [
        SqlBlindSpot("template", message, _line_of(sql, *words))
        for message, words in notes.unknown.items()
    ]
    tables = [".".join(split_name(table)) for table in notes.tables]
    return RenderedTemplate(
        texts=list(texts),
        tables=tables,
        blind_spots=spots,
        config=notes.config,
        conditions=list(conditions),
        executed=list(notes.executed),
    )


def _line_of(sql: str, *words: str) -> int:
    """Return the line of the first of some words that the text contains."""
    for word in words:
        at = sql.find(word) if word else -1
        if at >= 0:
            return sql.count("\n", 0, at) + 1
    return 1


class TemplateNotes:
    """The result of a rendering: the tables it refers to, and the values that are unknown."""

    def __init__(self) -> None:
        self.tables: dict[str, None] = {}
        self.unknown: dict[str, tuple[str, str]] = {}  # from message to the words it is about
        self.config: dict[str, Any] = {}
        self.executed: dict[str, None] = {}

    def merge(self, other: TemplateNotes) -> None:
        """Add the findings of another rendering."""
        self.tables.update(other.tables)
        self.unknown.update(other.unknown)
        self.config.update(other.config)
        self.executed.update(other.executed)


class _Rendering:
    """One rendering. `true_conditions` are the run-time conditions that are true; None: all."""

    def __init__(
        self,
        sql: str,
        template: Template,
        environment: MacroEnvironment,
        budget: Budget,
        true_conditions: frozenset[str] | None,
    ) -> None:
        self._sql = sql
        self._template = template
        self._environment = environment
        self._budget = budget
        self._all_true = true_conditions is None
        self.true_conditions = true_conditions or frozenset()
        self.conditions: dict[str, None] = {}
        self.notes = TemplateNotes()

    # TemplateRendering, for the names that dbt defines

    def branch(self, condition: str) -> bool:
        """Return the value of a condition known only at run time."""
        self.conditions[condition] = None
        return self._all_true or condition in self.true_conditions

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

    def has_variable(self, name: str) -> bool:
        """Return whether the project sets a variable."""
        return name in self._template.variables

    def variable(self, name: str, default: Any = None) -> Any:
        """Return a variable's value, its default, or an unknown value."""
        if name in self._template.variables:
            value = self._template.variables[name]
            if isinstance(value, str) and "{{" in value:
                return "".join(map(str, self._environment.compile(value).generate()))
            return value
        if default is not None:
            return default
        self.unknown(f"the variable {name} is unknown", name)
        return TemplateUnknown(self, name, noted=True)

    def configure(self, options: dict[str, Any]) -> None:
        """Record the options of a call of `config`."""
        self.notes.config.update(options)

    def setting(self, name: str, default: Any = None) -> Any:
        """Return an option that an earlier call of `config`, or another file, has set."""
        if name in self.notes.config:
            return self.notes.config[name]
        return self._template.settings.get(name, default)

    def columns(self, table: str) -> Sequence[str] | None:
        """Return the columns of a table, None when they are not known."""
        find = self._template.columns_of
        columns: Sequence[str] | None = find(".".join(split_name(table))) if find else None
        return columns or None

    def adapter(self) -> str:
        """Return the name of the adapter, "" when it is not known."""
        return self._template.adapter

    def execute(self, sql: str) -> None:
        """Record a statement that the template runs."""
        self.notes.executed[sql] = None

    def unknown(self, message: str, word: str) -> None:
        """Record an unknown value."""
        self.notes.unknown.setdefault(message, (word, self._environment.outermost_call))

    def approximate(self, macro: str) -> None:
        """Record a macro whose SQL differs from dbt's, if the SQL must be exact."""
        if self._template.exact:
            self.unknown(f"the macro {macro} is not rendered as dbt does", macro)

    # Rendering

    def text(self) -> str:
        """Return the rendered text; if rendering fails, the text with placeholders for tags."""
        try:
            if len(self._sql) > self._budget.limits.characters or _has_too_many_tags(self._sql):
                raise OverLimitError("it is too long")  # noqa: TRY301
            with self._environment.rendering(self, self._budget):
                return self._render()
        except OverLimitError as exc:
            self.unknown(f"the template exceeds a limit: {exc}", "")
        except (MacroReturnError, *TEMPLATE_FAULTS) as exc:
            self.unknown(f"the template cannot be rendered: {exc}", "")
        return strip_jinja(self._sql)

    def _render(self) -> str:
        template = self._environment.compile(strip_dbt_blocks(keep_line_numbers(self._sql)))
        pieces: list[str] = []
        length = 0
        for piece in map(str, template.generate()):
            length += len(piece)
            self._budget.spend()
            if length > self._budget.limits.characters:
                raise OverLimitError("its output is too long")
            pieces.append(piece)
        return "".join(pieces)


def _has_too_many_tags(text: str) -> bool:
    return next(islice(find_tags(text), _MAX_TAGS, None), None) is not None
