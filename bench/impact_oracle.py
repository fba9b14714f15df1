"""Checks impact by execution: changes a source, rebuilds every model, and compares the errors.

`python -m bench.impact_oracle [--show]`. Each source column is renamed, dropped and given other
types, and each source table gets new columns, under names of its own and of other tables. Every
change is made to a real DuckDB database in which all models were built before, and every model is
built again in order. The outcome of each model (error, other columns or rows, or unchanged) is
compared with the prediction of Downriver.
"""

from __future__ import annotations

import argparse
import re
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import duckdb
import msgspec

from downriver.model.changes import Change, ColumnAdd, ColumnDrop, ColumnRename, Outcome, TypeChange
from downriver.service import Lineage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

PROJECT = Path(__file__).parent / "impact_project"
NAMESPACE = "oracle"
_TARGETS = ("inc_orders", "inc_events", "inc_payments")
_MODEL = re.compile(r"^-- model: (\w+)\n(.*?)(?=^-- model: |\Z)", re.MULTILINE | re.DOTALL)
_WRITES = re.compile(r"(?:create or replace (?:table|view)|insert into) (\w+)")
# New types of a column: one that contains all old values, and others that do not.
_RETYPES = {
    "INTEGER": ("BIGINT", "VARCHAR", "DOUBLE"),
    "BIGINT": ("VARCHAR", "DOUBLE"),
    "DECIMAL": ("DECIMAL(18,4)", "VARCHAR", "DOUBLE"),
    "DOUBLE": ("VARCHAR",),
    "DATE": ("TIMESTAMP", "VARCHAR"),
    "TIMESTAMP": ("VARCHAR", "DATE"),
    "BOOLEAN": ("VARCHAR", "INTEGER"),
}


class Model(NamedTuple):
    """A statement that builds one table or view, or adds to one."""

    name: str
    sql: str

    @property
    def writes(self) -> str:
        """The table or view that it creates or adds to."""
        found = _WRITES.search(self.sql)
        assert found is not None
        return found[1]


class Trial(NamedTuple):
    """A change, and its statements."""

    change: Change
    statements: list[str]


def list_models() -> list[Model]:
    """Return the project's models in the order in which they are built."""
    text = (PROJECT / "models.sql").read_text("utf-8")
    return [Model(m[1], m[2].strip().rstrip(";")) for m in _MODEL.finditer(text)]


# Actual outcomes


class Rebuilt(NamedTuple):
    """The outcome of each model: `error`, `changed`, `stale` or `same`."""

    outcomes: dict[str, str]
    errors: dict[str, str]


class ModelDatabase:
    """A database with every model built, copied for each change."""

    def __init__(self, folder: Path, models: list[Model], sources: str) -> None:
        self._folder = folder
        self._models = models
        self._base = folder / "base.duckdb"
        with duckdb.connect(str(self._base)) as connection:
            connection.execute(sources)
            for model in models:
                connection.execute(model.sql)
            self.schemas = _schemas(connection)
        self._before = self._rebuild([])

    def try_change(self, trial: Trial) -> Rebuilt | None:
        """Make a change and build all models again; None if the database rejects the change."""
        found = self._rebuild(trial.statements)
        if found is None or self._before is None:
            return None
        contents, errors = found
        outcomes: dict[str, str] = {}
        for model in self._models:
            if model.name in errors:
                outcomes[model.name] = "error"
            elif self._is_behind(model, outcomes):
                outcomes[model.name] = "stale"
            else:
                same = contents[model.name] == self._before[0][model.name]
                outcomes[model.name] = "same" if same else "changed"
        return Rebuilt(outcomes, errors)

    def _is_behind(self, model: Model, outcomes: dict[str, str]) -> bool:
        """Return whether a model reads a table that a failed model should have rebuilt."""
        words = set(re.findall(r"\w+", model.sql)) - {model.writes}
        return any(
            other.writes in words and outcomes.get(other.name) in ("error", "stale")
            for other in self._models
            if other.name in outcomes
        )

    def _rebuild(self, statements: list[str]) -> tuple[dict[str, object], dict[str, str]] | None:
        copy = self._folder / "copy.duckdb"
        shutil.copyfile(self._base, copy)
        with duckdb.connect(str(copy)) as connection:
            try:
                for statement in statements:
                    connection.execute(statement)
            except duckdb.Error:
                return None
            contents: dict[str, object] = {}
            errors: dict[str, str] = {}
            for model in self._models:
                try:
                    connection.execute(model.sql)
                    contents[model.name] = _content(connection, model.writes)
                except duckdb.Error as exc:
                    errors[model.name] = str(exc).splitlines()[0]
        return contents, errors


def _content(connection: duckdb.DuckDBPyConnection, table: str) -> object:
    relation = connection.execute(f'select * from "{table}"')
    columns = [(name, str(kind)) for name, kind, *_ in relation.description]
    return columns, sorted(map(repr, relation.fetchall()))


def _schemas(connection: duckdb.DuckDBPyConnection) -> dict[str, dict[str, str]]:
    rows = connection.execute(
        "select table_name, column_name, data_type from information_schema.columns"
        " order by table_name, ordinal_position"
    ).fetchall()
    found: dict[str, dict[str, str]] = {}
    for table, column, kind in rows:
        found.setdefault(table, {})[column] = kind
    return found


# Changes to try


def list_trials(schemas: dict[str, dict[str, str]], sources: list[str]) -> Iterator[Trial]:
    """Yield every rename, drop and retype of every column, and new columns for every table."""
    names = sorted({column for table in sources for column in schemas[table]})
    for table in sources:
        for column, kind in schemas[table].items():
            yield _rename(table, column, f"{column}_new")
            yield Trial(
                ColumnDrop(dataset=table, column=column),
                [f"alter table {table} drop column {column}"],
            )
            for to in _RETYPES.get(kind.partition("(")[0], ()):
                if to.partition("(")[0] != kind or "(" in to:
                    yield Trial(
                        TypeChange(dataset=table, column=column, to=to),
                        [f"alter table {table} alter column {column} type {to}"],
                    )
        for name in ["brand_new", *(name for name in names if name not in schemas[table])]:
            yield _required(table, name)
        first = next(iter(schemas[table]))
        for name in names:
            if name not in schemas[table]:
                yield _rename(table, first, name)


def _rename(table: str, column: str, to: str) -> Trial:
    return Trial(
        ColumnRename(dataset=table, column=column, to=to),
        [f"alter table {table} rename column {column} to {to}"],
    )


def _required(table: str, name: str) -> Trial:
    change = ColumnAdd(dataset=table, column=name, data_type="integer", required=True)
    return Trial(
        change,
        [
            f"create table swapped as select *, 0 as {name} from {table}",
            f"drop table {table}",
            f"alter table swapped rename to {table}",
            f"alter table {table} alter column {name} set not null",
        ],
    )


# Predictions


def open_lineage(
    folder: Path, models: list[Model], database: ModelDatabase, tables: list[str]
) -> Lineage:
    """Return a store with the schemas of the sources and the SQL of the models only."""
    lineage = Lineage.open(str(folder / "lineage"))
    lineage.ingest([_schema_event(table, database.schemas[table]) for table in tables])
    for model in models:
        lineage.capture.sql(
            model.sql, dialect="duckdb", namespace=NAMESPACE, job=f"job_{model.name}"
        )
    return lineage


def _schema_event(table: str, columns: dict[str, str]) -> bytes:
    fields = [{"name": name, "type": kind} for name, kind in columns.items()]
    facet = {"_producer": "https://oracle", "_schemaURL": "https://oracle", "fields": fields}
    return msgspec.json.encode(
        {
            "eventTime": "2026-01-01T00:00:00Z",
            "producer": "https://oracle",
            "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/DatasetEvent",
            "dataset": {"namespace": NAMESPACE, "name": table, "facets": {"schema": facet}},
        }
    )


_REPORTED = {
    Outcome.FAILS: "error",
    Outcome.NOT_REBUILT: "stale",
    Outcome.CHANGES: "changed",
    Outcome.MAY_FAIL: "unsure",
}


def predict(lineage: Lineage, change: Change, models: list[Model]) -> dict[str, str]:
    """Return the predicted outcome of each model."""
    named = msgspec.structs.replace(change, dataset=f"dataset:{NAMESPACE}:{change.dataset}")
    reported = {}
    for effect in lineage.impact([named]).effects:
        reported[effect.consumer.rpartition(":")[2]] = _REPORTED[effect.outcome]
    # The only model that fills a table has the name of the table.
    return {m.name: reported.get(f"job_{m.name}", reported.get(m.writes, "same")) for m in models}


# Comparison


class Tally(NamedTuple):
    """The number of occurrences of each pair of actual and predicted outcome."""

    counts: Counter[tuple[str, str]]

    def recall(self, kind: str) -> float:
        """Return the share of actual outcomes of this kind that were predicted."""
        real = sum(n for (happened, _), n in self.counts.items() if happened == kind)
        return self.counts[(kind, kind)] / real if real else 1.0

    def precision(self, kind: str) -> float:
        """Return the share of predictions of this kind that were correct."""
        reported = sum(n for (_, predicted), n in self.counts.items() if predicted == kind)
        return self.counts[(kind, kind)] / reported if reported else 1.0


class Wrong(NamedTuple):
    """A model with a wrong prediction."""

    change: str
    model: str
    happened: str
    reported: str
    error: str


def run_trials(only: str = "", every: int = 1) -> tuple[dict[str, Tally], list[Wrong], int]:
    """Try every change; return the counts by type of change, the wrong predictions, and the total.

    `only` selects one type of change. With `every` = n, only each n-th change is tried.
    """
    sources = (PROJECT / "sources.sql").read_text("utf-8")
    return run_project(
        list_models(), sources, _TARGETS, lambda at, t: _is_wanted(at, t, only, every)
    )


def _is_wanted(at: int, trial: Trial, only: str, every: int) -> bool:
    return only in type(trial.change).__name__ and not at % every


def run_project(
    models: list[Model],
    sources_sql: str,
    targets: Sequence[str],
    is_wanted: Callable[[int, Trial], bool],
) -> tuple[dict[str, Tally], list[Wrong], int]:
    """Try changes of one project. `targets` are tables that models only add to."""
    tallies: dict[str, Tally] = {}
    wrong: list[Wrong] = []
    tried = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        database = ModelDatabase(folder, models, sources_sql)
        written = {model.writes for model in models if model.sql.startswith("create")}
        sources = [t for t in database.schemas if t not in written and t not in targets]
        with open_lineage(folder, models, database, [*sources, *targets]) as lineage:
            for at, trial in enumerate(list_trials(database.schemas, sources)):
                if not is_wanted(at, trial):
                    continue
                happened = database.try_change(trial)
                if happened is None:
                    continue
                tried += 1
                reported = predict(lineage, trial.change, models)
                kind = type(trial.change).__name__
                tally = tallies.setdefault(kind, Tally(Counter()))
                for model in models:
                    real, predicted = happened.outcomes[model.name], reported[model.name]
                    tally.counts[(real, predicted)] += 1
                    if real != predicted:
                        error = happened.errors.get(model.name, "")
                        wrong.append(Wrong(str(trial.change), model.name, real, predicted, error))
    return tallies, wrong, tried


def total(tallies: dict[str, Tally]) -> Tally:
    """Return the sum of counts."""
    counts: Counter[tuple[str, str]] = Counter()
    for tally in tallies.values():
        counts.update(tally.counts)
    return Tally(counts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--show", action="store_true", help="list the wrong predictions")
    parser.add_argument("--only", default="", help="one type of change, such as TypeChange")
    arguments = parser.parse_args()
    tallies, wrong, tried = run_trials(arguments.only)
    if arguments.show:
        for one in wrong:
            print(f"{one.change}: {one.model}: {one.happened}, reported {one.reported} {one.error}")
    print(f"{tried} changes, {len(list_models())} models")
    print_tallies(tallies)


def print_tallies(tallies: dict[str, Tally]) -> None:
    """Print recall and precision by type of change."""
    print("| change | pairs | errors | recall | precision | changed: recall | precision |")
    print("|---|---|---|---|---|---|---|")
    for name, tally in [*tallies.items(), ("all", total(tallies))]:
        pairs = sum(tally.counts.values())
        errors = sum(n for (happened, _), n in tally.counts.items() if happened == "error")
        figures = [
            f"{tally.recall(k):.3f} | {tally.precision(k):.3f}" for k in ("error", "changed")
        ]
        print(f"| {name} | {pairs:,} | {errors:,} | {' | '.join(figures)} |")


if __name__ == "__main__":
    main()
