"""Checks impact by execution on randomly generated projects.

`python -m bench.impact_fuzz [--projects 30] [--models 20] [--changes 20] [--seed 1] [--show]`. Each
project has random source tables with random rows, and models that select, cast, compute, filter,
join, aggregate, unite and copy them in random ways. DuckDB executes every model before and after
each change. The observed errors and differences are compared with those that Downriver predicts.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from typing import NamedTuple

import duckdb

from bench.impact_oracle import Model, Tally, Trial, Wrong, print_tallies, run_project

_TYPES = ("INTEGER", "BIGINT", "DECIMAL(10,2)", "DOUBLE", "VARCHAR", "DATE", "TIMESTAMP", "BOOLEAN")
_ROWS = 12
_NUMERIC = ("{c}", "{c} + 1", "{c} * 2", "abs({c})", "coalesce({c}, 0)", "round({c}, 1)",
            "cast({c} as double)", "cast({c} as varchar)", "cast({c} as integer)",
            "case when {c} > 5 then 'high' else 'low' end", "{c} > 3", "{c} is null",
            "-{c}")  # fmt: skip
_TEXT = ("{c}", "upper({c})", "length({c})", "{c} || '_x'", "coalesce({c}, 'none')", "{c} = 'b'",
         "substr({c}, 1, 1)", "{c} is not null", "cast({c} as varchar)")  # fmt: skip
_TEMPORAL = ("{c}", "cast({c} as varchar)", "cast({c} as date)", "extract(year from {c})",
             "date_trunc('month', {c})", "{c} > date '2024-03-01'", "{c} is null")  # fmt: skip
_BOOLEAN = ("{c}", "not {c}", "case when {c} then 1 else 0 end", "cast({c} as varchar)")
_AGGREGATES = ("count({c})", "count(distinct {c})", "min({c})", "max({c})")
_SUMS = ("sum({c})", "avg({c})")


class Table(NamedTuple):
    """A table or model, and its columns with their types."""

    name: str
    columns: dict[str, str]

    def of_family(self, *families: str) -> list[str]:
        """Return the columns whose type begins with one of these words."""
        return [name for name, kind in self.columns.items() if kind.startswith(families)]


class Project:
    """A generated project: the same for the same seed."""

    def __init__(self, seed: int, models: int) -> None:
        self._random = random.Random(seed)
        self._connection = duckdb.connect()
        self._tables: list[Table] = []
        self.models: list[Model] = []
        statements = [self._source(f"src{number}") for number in range(self._random.randint(3, 4))]
        self.sources_sql = ";\n".join(statements)
        while len(self.models) < models:
            self._add_model(f"m{len(self.models)}")
        self._connection.close()

    # Source tables

    def _source(self, name: str) -> str:
        kinds = self._random.choices(_TYPES, k=self._random.randint(4, 6))
        columns = {"id": "INTEGER", "grp": "INTEGER"}
        columns |= {f"{name}_c{at}": kind for at, kind in enumerate(kinds)}
        rows = ", ".join(
            f"({', '.join(self._value(kind, row) for kind in columns.values())})"
            for row in range(_ROWS)
        )
        listed = ", ".join(f"{column} {kind}" for column, kind in columns.items())
        statement = f"create table {name} ({listed}); insert into {name} values {rows}"
        self._connection.execute(statement)
        self._tables.append(Table(name, columns))
        return statement

    def _value(self, kind: str, row: int) -> str:
        if row and self._random.random() < 0.1:
            return "null"
        number = self._random.randint(0, 9)
        match kind.partition("(")[0]:
            case "INTEGER" | "BIGINT":
                return str(number)
            case "DECIMAL" | "DOUBLE":
                return f"{number}.{self._random.randint(0, 99):02}"
            case "VARCHAR":
                return f"'{self._random.choice('abcde')}'"
            case "DATE":
                return f"date '2024-0{self._random.randint(1, 6)}-1{number}'"
            case "TIMESTAMP":
                return f"timestamp '2024-0{self._random.randint(1, 6)}-1{number} 0{number}:30:00'"
            case _:
                return self._random.choice(("true", "false"))

    # Models

    def _add_model(self, name: str) -> None:
        """Add a model that DuckDB can execute. If it cannot, generate another one."""
        shapes = (self._select, self._select, self._filter, self._join, self._aggregate,
                  self._aggregate, self._star, self._unite, self._with)  # fmt: skip
        query = self._random.choice(shapes)()
        kind = self._random.choice(("table", "table", "view"))
        sql = f"create or replace {kind} {name} as {query}"
        try:
            self._connection.execute(sql)
            described = self._connection.execute(f"describe {name}").fetchall()
        except duckdb.Error:
            return
        self._tables.append(Table(name, {row[0]: row[1] for row in described}))
        self.models.append(Model(name, sql))

    def _pick(self) -> Table:
        return self._random.choice(self._tables)

    def _select(self) -> str:
        table = self._pick()
        return f"select {self._items(table, '')} from {table.name}"

    def _filter(self) -> str:
        table = self._pick()
        return f"select {self._items(table, '')} from {table.name} where {self._predicate(table)}"

    def _join(self) -> str:
        left, right = self._pick(), self._pick()
        keys = [column for column in left.columns if column in right.columns]
        key = self._random.choice(keys) if keys else "id"
        how = self._random.choice(("join", "left join"))
        items = f"{self._items(left, 'l.')}, {self._items(right, 'r.', 'r')}"
        return f"select {items} from {left.name} l {how} {right.name} r on l.{key} = r.{key}"

    def _aggregate(self) -> str:
        table = self._pick()
        key = self._random.choice(list(table.columns))
        items = [f"{key} as k"]
        for at, column in enumerate(self._some(table)):
            is_number = column in table.of_family("INTEGER", "BIGINT", "DECIMAL", "DOUBLE")
            choices = (*_AGGREGATES, *(_SUMS if is_number else ()))
            items.append(f"{self._random.choice(choices).format(c=column)} as a{at}")
        return f"select {', '.join(items)} from {table.name} group by {key}"

    def _star(self) -> str:
        return f"select * from {self._pick().name}"

    def _unite(self) -> str:
        table, column = self._pick(), "id"
        if column not in table.columns:
            column = next(iter(table.columns))
        word = self._random.choice(("union all", "union"))
        query = f"select {column} as u from {table.name}"
        return f"{query} {word} {query} where {self._predicate(table)}"

    def _with(self) -> str:
        table = self._pick()
        column = self._random.choice(list(table.columns))
        return f"with c as (select * from {table.name}) select {column} as kept, 1 as one from c"

    def _some(self, table: Table) -> list[str]:
        names = list(table.columns)
        return self._random.sample(names, self._random.randint(1, min(4, len(names))))

    def _items(self, table: Table, prefix: str, suffix: str = "e") -> str:
        items = []
        for at, column in enumerate(self._some(table)):
            template = self._random.choice(_templates(table.columns[column]))
            alias = column if template == "{c}" and suffix == "e" else f"{suffix}{at}"
            items.append(f"{template.format(c=prefix + column)} as {alias}")
        return ", ".join(items)

    def _predicate(self, table: Table) -> str:
        column = self._random.choice(list(table.columns))
        kind = table.columns[column]
        if kind.startswith(("INTEGER", "BIGINT", "DECIMAL", "DOUBLE")):
            return self._random.choice((f"{column} > 3", f"{column} is not null"))
        if kind.startswith("VARCHAR"):
            return self._random.choice((f"{column} = 'b'", f"{column} is not null"))
        return f"{column} is not null"


def _templates(kind: str) -> tuple[str, ...]:
    if kind.startswith(("INTEGER", "BIGINT", "HUGEINT", "DECIMAL", "DOUBLE")):
        return _NUMERIC
    if kind.startswith(("DATE", "TIMESTAMP")):
        return _TEMPORAL
    return {"VARCHAR": _TEXT, "BOOLEAN": _BOOLEAN}.get(kind, ("{c}",))


def run_fuzz(
    projects: int, models: int, changes: int, seed: int
) -> tuple[dict[str, Tally], list[Wrong], int]:
    """Generate projects, try a sample of changes of each, and return the counts of all."""
    tallies: dict[str, Tally] = {}
    wrong: list[Wrong] = []
    tried = 0
    for number in range(projects):
        project = Project(seed * 1000 + number, models)
        chosen = random.Random(seed * 1000 + number)

        def is_wanted(at: int, trial: Trial, chosen: random.Random = chosen) -> bool:
            return chosen.random() < changes / 100

        found, errors, count = run_project(project.models, project.sources_sql, (), is_wanted)
        for kind, tally in found.items():
            tallies.setdefault(kind, Tally(Counter())).counts.update(tally.counts)
        wrong += [error._replace(change=f"{number}: {error.change}") for error in errors]
        tried += count
    return tallies, wrong, tried


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--projects", type=int, default=30)
    parser.add_argument("--models", type=int, default=20)
    parser.add_argument("--changes", type=int, default=20, help="per cent of all changes to try")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", action="store_true", help="list the wrong predictions")
    arguments = parser.parse_args()
    tallies, wrong, tried = run_fuzz(
        arguments.projects, arguments.models, arguments.changes, arguments.seed
    )
    if arguments.show:
        for prediction in wrong:
            print(
                f"{prediction.change}: {prediction.model}: {prediction.happened}, "
                f"reported {prediction.reported} {prediction.error}"
            )
    print(f"{tried} changes, {arguments.projects} projects of {arguments.models} models")
    print_tallies(tallies)


if __name__ == "__main__":
    main()
