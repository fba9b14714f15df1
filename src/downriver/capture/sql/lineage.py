"""`parse_sql_lineage`: SQL text to lineage. It never raises because of what the text contains."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.capture.sql.catalog import KnownColumns
from downriver.capture.sql.collector import LineageCollector
from downriver.capture.sql.limits import Budget, SqlLimits
from downriver.capture.sql.query.names import DialectNames
from downriver.capture.sql.result import SqlBlindSpot, SqlLineage, StatementLineage
from downriver.capture.sql.script import Script
from downriver.capture.sql.script_parser import ScriptParser
from downriver.capture.sql.templates.jinja import (
    RenderedTemplate,
    Template,
    render_template,
)
from downriver.capture.sql.templates.tags import is_template
from downriver.capture.sql.text.dialect import FALLBACKS, get_dialect, guess_dialect
from downriver.reading_limits import Refusal, refusal_of, supervised_limits

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlglot.dialects.dialect import Dialect

    from downriver.capture.sql.catalog import Schema

_MISREAD = frozenset({"unparsed", "unreadable", "other_dialect"})
_LONGEST_TO_RETRY = 50_000  # characters
_MOST_READ = 4  # fewer than one in so many statements is misread


def parse_sql_lineage(
    sql: str,
    *,
    dialect: str | None = None,
    schema: Schema | None = None,
    template: Template | None = None,
    limits: SqlLimits | None = None,
) -> SqlLineage:
    """Return the table and column lineage of a SQL statement, script or Jinja template.

    `dialect` is one of sqlglot's names, "" for generic SQL; without it the dialect is guessed.
    `schema` maps table names to their known columns. It may also be a function from a table to its
    columns. `template` is the context of a Jinja template.
    """
    refusal = refusal_of(sql)
    try:
        if refusal is None:
            with supervised_limits(sql):
                budget = Budget(limits or SqlLimits())
                rendered = render_sql(sql, template or Template(), budget)
                return read_rendered(rendered, dialect=dialect, schema=schema, budget=budget)
    except MemoryError:
        refusal = Refusal.too_large()
    spot = SqlBlindSpot(refusal.reason.value, refusal.detail)
    return _summary(dialect or "", dialect is None, [], [spot])


def render_sql(sql: str, template: Template, budget: Budget | None = None) -> RenderedTemplate:
    """Return the SQL of a template, or a text without tags as it is."""
    if is_template(sql):
        return render_template(sql, template, budget or Budget(SqlLimits()))
    return RenderedTemplate(texts=[sql], tables=[], blind_spots=[])


def read_rendered(
    rendered: RenderedTemplate,
    *,
    dialect: str | None = None,
    schema: Schema | None = None,
    budget: Budget | None = None,
) -> SqlLineage:
    """Return the lineage of rendered SQL."""
    budget = budget or Budget(SqlLimits())
    if dialect is not None:
        return _read(rendered, dialect, schema or {}, budget)
    return _read_guessing(rendered, schema or {}, budget)


def _read_guessing(rendered: RenderedTemplate, schema: Schema, budget: Budget) -> SqlLineage:
    """Read in the dialect that the text suggests, or else in the first dialect that can read it.

    If there is none, a statement that the suggested dialect cannot read is read in another.
    """
    guess = guess_dialect(rendered.texts[-1])
    first = _read(rendered, guess, schema, budget, guessed=True, retries=False)
    if not _misread(first):
        return first
    is_short = len(rendered.texts[0]) <= _LONGEST_TO_RETRY
    for other in ("", *FALLBACKS) if is_short and not _mostly_read(first) else ():
        if other == first.dialect or budget.out_of_time:
            continue
        attempt = _read(rendered, other, schema, budget, guessed=True, retries=False)
        if not _misread(attempt):
            return attempt
    return first if budget.out_of_time else _read(rendered, guess, schema, budget, guessed=True)


def _mostly_read(lineage: SqlLineage) -> bool:
    """Return whether the guessed dialect read most statements. Then no other dialect is tried."""
    misread = sum(
        any(spot.kind in _MISREAD for spot in statement.blind_spots)
        for statement in lineage.statements
    )
    return bool(lineage.dialect) and misread * _MOST_READ < len(lineage.statements)


def _misread(lineage: SqlLineage) -> bool:
    return any(spot.kind in _MISREAD for spot in lineage.blind_spots)


def _read(
    rendered: RenderedTemplate,
    dialect: str,
    schema: Schema,
    budget: Budget,
    *,
    guessed: bool = False,
    retries: bool = True,
) -> SqlLineage:
    statements: list[StatementLineage] = []
    for text in rendered.texts:
        found = _read_script(text, get_dialect(dialect), schema, budget, retries)
        statements = _united(statements, found) if statements else found
    lineage = _summary(dialect, guessed, statements, rendered.blind_spots)
    lineage.inputs += [
        table
        for table in rendered.tables
        if not any(_is_same(table, known) for known in [*lineage.inputs, *lineage.outputs])
    ]
    return lineage


def _read_script(
    sql: str, dialect: Dialect, schema: Schema, budget: Budget, retries: bool
) -> list[StatementLineage]:
    parser = ScriptParser(dialect, budget, retries=retries)
    collector = LineageCollector(dialect, parser.variables)
    limit = budget.limits.characters
    if len(sql) > limit:
        collector.too_large(sql[:limit])
        return collector.statements
    script = Script(
        DialectNames(dialect), KnownColumns(schema), budget, collector, variables=parser.variables
    )
    script.read(parser.read(sql))
    collector.finish()
    return collector.statements


def _is_same(one: str, other: str) -> bool:
    return one.replace('"', "").replace("`", "").casefold() == other.casefold()


def _united(one: list[StatementLineage], other: list[StatementLineage]) -> list[StatementLineage]:
    """Return the statements of two renderings of a template, merged where they correspond."""
    if [statement.kind for statement in one] != [statement.kind for statement in other]:
        return [*one, *(s for s in other if all(s.sql != known.sql for known in one))]
    return [_either(first, second) for first, second in zip(one, other, strict=True)]


def _either(one: StatementLineage, other: StatementLineage) -> StatementLineage:
    return StatementLineage(
        kind=one.kind,
        line=one.line,
        sql=max(one.sql, other.sql, key=len),
        inputs=_union([one.inputs, other.inputs]),
        outputs=_union([one.outputs, other.outputs]),
        columns=_union([one.columns, other.columns]),
        column_edges=sorted({*one.column_edges, *other.column_edges}),
        dataset_edges=sorted({*one.dataset_edges, *other.dataset_edges}),
        lifecycle=one.lifecycle,
        changed=_union([one.changed, other.changed]),
        routine=one.routine,
        blind_spots=list(dict.fromkeys([*one.blind_spots, *other.blind_spots])),
    )


def _summary(
    dialect: str, guessed: bool, statements: list[StatementLineage], spots: list[SqlBlindSpot]
) -> SqlLineage:
    return SqlLineage(
        dialect=dialect,
        dialect_guessed=guessed,
        statements=statements,
        inputs=_union(s.inputs for s in statements),
        outputs=_union(s.outputs for s in statements),
        column_edges=sorted({e for s in statements for e in s.column_edges}),
        dataset_edges=sorted({e for s in statements for e in s.dataset_edges}),
        blind_spots=[*spots, *(spot for s in statements for spot in s.blind_spots)],
    )


def _union(lists: Iterable[list[str]]) -> list[str]:
    return list(dict.fromkeys(name for names in lists for name in names))
