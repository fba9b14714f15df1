"""Checks SQL lineage by execution: changes one input column and compares the outputs.

`python -m bench.sql_oracle [NAME…] [--quick] [--markdown FILE]`

Every statement in `sql_statements` runs on DuckDB over generated data. Then the values of one input
column change, in many ways, and the statement runs again. An output column that differs depends on
that input column, so there must be an edge to that column or to every row. An edge that no change
of its input shows counts against precision.
"""

from __future__ import annotations

import argparse
import multiprocessing
import re
import sys
from collections import Counter, defaultdict
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import duckdb
import msgspec
from rich.console import Console
from rich.progress import track

from bench.report import Table, print_table, render_markdown
from bench.sql_claims import DIRECT, Claims, claims_of, held_after
from bench.sql_databases import DATABASES, Database
from bench.sql_execution import (
    Case,
    Difference,
    Run,
    Source,
    StatementRunner,
    compare,
    normal,
    read_cases,
)
from bench.sql_perturbations import KINDS
from downriver.capture.sql import parse_sql_lineage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from downriver.capture.sql import SqlLineage

PROCESSES = 2


class Effort(msgspec.Struct, frozen=True):
    """The number of changes to try for each column, and the rounds with other seeds.

    Columns that a statement names get `rounds`; those with an edge not yet seen get up to `extra`
    more.
    """

    kinds: int
    rounds: int
    extra: int


TOGETHER = 3  # changes of the columns that the statement does not name
QUICK = Effort(kinds=4, rounds=1, extra=0)
FULL = Effort(kinds=len(KINDS), rounds=2, extra=10)


class Edge(NamedTuple):
    """A reported edge, as the result shows it."""

    source: str
    target: str
    group: str  # DIRECT, INDIRECT, or ROWS for an edge to every row
    kinds: str


class Verdict(msgspec.Struct):
    """The result for one case."""

    case: Case
    trials: int = 0
    failed: int = 0
    changes: int = 0
    missed: list[str] = []
    missed_without_schema: list[str] = []
    unseen: list[Edge] = []
    unproved: list[Edge] = []  # seen, but perhaps only with other edges of the same source
    reported: dict[str, int] = {}
    problems: list[str] = []


class Experiment:
    """One case: how its outputs differ when a source is changed."""

    def __init__(
        self, runner: StatementRunner, case: Case, base: Run, claims: Mapping[str, Claims]
    ) -> None:
        self._runner = runner
        self._case = case
        self.base = base
        self.claims = claims
        self.seen: dict[Source, list[dict[str, Difference]]] = defaultdict(list)
        self.trials = 0
        self.failed = 0

    def attempt(self, sources: tuple[Source, ...], kind: int, seed: int) -> dict[str, Difference]:
        """Return how outputs differ when these columns are changed."""
        schema, made = self._runner.perturb(sources, kind, seed)
        self.trials += 1
        try:
            after = self._runner.run(self._case, schema, list(self.base))
        except duckdb.Error:  # the statement fails on the changed data: nothing to compare
            self.failed += 1
            return {}
        found: dict[str, Difference] = {}
        for name, result in self.base.items():
            fed = {at for source in sources for at in self.claims[name].fed(source)}
            fed &= set(range(len(result.names)))
            own = {at for source in sources for at in self.own(source, name)}
            difference = compare(result, after[name], fed=fed - own, ignored=own, made=made)
            if difference is not None:
                found[name] = difference
        return found

    def own(self, source: Source, output: str) -> list[int]:
        """Return the outputs in which a source is a column of the written table itself.

        An old value in the table is not an effect of the statement.
        """
        names = self.base[output].names
        return [at for at, name in enumerate(names) if (output, name.casefold()) == source]

    def observe(self, source: Source, kind: int, seed: int) -> None:
        """Change one column and record the differences."""
        found = self.attempt((source,), kind, seed)
        if found:
            self.seen[source].append(found)


def judge(
    runner: StatementRunner, case: Case, effort: Effort, lineage: SqlLineage | None = None
) -> Verdict:
    """Run a case on changed data and compare the differences with its lineage."""
    verdict = Verdict(case)
    try:
        base = runner.run(case, "main")
    except duckdb.Error as exc:
        verdict.problems.append(f"does not run: {str(exc).splitlines()[0]}")
        return verdict
    verdict.problems += _check_base(runner, case, base)
    schema = runner.database.schema
    lineage = lineage or parse_sql_lineage(case.sql, dialect="duckdb", schema=schema)
    claims = claims_of(lineage, base, schema)
    verdict.problems += _check_columns(base, claims)
    verdict.problems += [f"blind spot: {spot.message}" for spot in lineage.blind_spots]
    verdict.problems += _check_identities(runner.database, case, base, claims)
    experiment = Experiment(runner, case, base, claims)
    _experiment(experiment, _sources(runner.database, case), effort)
    verdict.trials, verdict.failed = experiment.trials, experiment.failed
    _hold_against(verdict, experiment)
    blind = held_after(parse_sql_lineage(case.sql, dialect="duckdb"), schema)
    for output, source, at in _changes(experiment):
        names = claims[output].names
        column = names[at] if at < len(names) else base[output].names[at]
        if output not in blind or not blind[output].depends(source, column):
            verdict.missed_without_schema.append(f"{'.'.join(source)} → {column}")
    return verdict


def _check_base(runner: StatementRunner, case: Case, base: Run) -> Iterator[str]:
    for name, result in base.items():
        if not result.rows:
            yield f"{name or 'the query'} has no rows"
    if not base:
        yield "writes nothing"
    for seed in (1, 2):
        again = runner.run(case, runner.reorder(seed), list(base))
        if any(compare(result, again[name]) is not None for name, result in base.items()):
            yield "depends on the order in which rows are stored"
            return


def _check_columns(base: Run, claims: Mapping[str, Claims]) -> Iterator[str]:
    for name, result in base.items():
        ours = claims[name].names
        named = [
            a
            for a, b in zip(ours, result.names, strict=False)
            if a.isidentifier() or b.isidentifier()
        ]
        theirs = [
            b
            for a, b in zip(ours, result.names, strict=False)
            if a.isidentifier() or b.isidentifier()
        ]
        if len(ours) != len(result.names) or [a.casefold() for a in named] != [
            b.casefold() for b in theirs
        ]:
            yield f"columns are {', '.join(result.names)}, not {', '.join(ours)}"


def _check_identities(
    database: Database, case: Case, base: Run, claims: Mapping[str, Claims]
) -> Iterator[str]:
    """Check that a column with only IDENTITY edges contains only source values and constants."""
    for name, result in base.items():
        for at, column in enumerate(claims[name].names[: len(result.names)]):
            sources = {s: kinds for (s, to), kinds in claims[name].columns.items() if to == at}
            direct = {s for s, kinds in sources.items() if kinds & set(DIRECT)}
            if not direct or any(sources[s] & set(DIRECT) != {"IDENTITY"} for s in direct):
                continue
            known: set[Any] = {None, *_constants(case)}
            for table, field in direct | ({(name, column.casefold())} & _columns(database)):
                known.update(map(normal, database.tables[table].values(field)))
            other = {row[at] for row in result.rows} - known
            if other:
                yield f"{column} has only IDENTITY edges but contains {sorted(map(str, other))[:3]}"


def _constants(case: Case) -> Iterator[Any]:
    yield from re.findall(r"'([^']*)'", case.sql)
    yield from map(Decimal, re.findall(r"\b\d+(?:\.\d+)?\b", case.sql))


def _columns(database: Database) -> set[Source]:
    return {(t.name, c) for t in database.tables.values() for c in t.columns}


def _sources(database: Database, case: Case) -> tuple[list[Source], list[Source]]:
    """Return the columns that a case may read: those it names, and others of the same tables."""
    words = set(re.findall(r"\w+", case.sql.casefold()))
    found = [s for s in sorted(_columns(database)) if s[0] in words]
    return [s for s in found if s[1] in words], [s for s in found if s[1] not in words]


def _experiment(
    experiment: Experiment, sources: tuple[list[Source], list[Source]], effort: Effort
) -> None:
    claimed = _claimed(experiment.claims)
    tried = [*sources[0], *(s for s in sources[1] if s in claimed)]
    rest = tuple(s for s in sources[1] if s not in claimed)
    # Columns that are not named are changed together first, and alone only if that has an effect.
    together = [experiment.attempt(rest, k, 0) for k in range(min(effort.kinds, TOGETHER)) if rest]
    if any(d.columns or d.rest for found in together for d in found.values()):
        tried += rest
    for seed in range(effort.rounds + effort.extra):
        for source in tried:
            if seed < effort.rounds or _unseen_from(source, experiment):
                for kind in range(effort.kinds):
                    experiment.observe(source, kind, seed)


def _claimed(claims: Mapping[str, Claims]) -> set[Source]:
    return {s for c in claims.values() for s in (*c.rows, *(of for of, _ in c.columns))}


def _unseen_from(source: Source, experiment: Experiment, *, alone: bool = False) -> list[Edge]:
    """Return the edges of a source whose output never changed.

    `alone` is stricter. The effect of a column's edge must show while columns that this source does
    not feed are unchanged. The effect of an edge to every row must show in columns that the source
    does not feed.
    """
    found: list[Edge] = []
    for name, result in experiment.base.items():
        ours = experiment.claims[name]
        own = set(experiment.own(source, name))
        fed = ours.fed(source) - own
        seen = [d[name] for d in experiment.seen.get(source, ()) if name in d]
        quiet = [d for d in seen if not d.rest] if alone and source in ours.rows else seen
        shown = {result.names[at] for d in quiet for at in d.columns}
        unseen = {result.names[at]: at for at in sorted(fed) if at < len(result.names)}
        found += [
            edge
            for column, at in unseen.items()
            if column not in shown
            for edge in _split(source, column, ours.columns[source, at])
        ]
        all_fed = len(fed | own) == len(result.names)
        if source in ours.rows and not any(
            d.rest or (d.columns and (all_fed or not alone)) for d in seen
        ):
            found.append(Edge(".".join(source), "*", "ROWS", " ".join(sorted(ours.rows[source]))))
    return found


def _split(source: Source, target: str, kinds: set[str]) -> Iterator[Edge]:
    """Yield the reported edges from a source to a column: direct, indirect or both."""
    for group, some in (("DIRECT", kinds & set(DIRECT)), ("INDIRECT", kinds - set(DIRECT))):
        if some:
            yield Edge(".".join(source), target, group, " ".join(sorted(some)))


def _hold_against(verdict: Verdict, experiment: Experiment) -> None:
    reported: Counter[str] = Counter()
    for name, ours in experiment.claims.items():
        reported["ROWS"] += len(ours.rows)
        edges = {
            edge
            for (source, at), kinds in ours.columns.items()
            if at not in experiment.own(source, name)
            for edge in _split(source, ours.names[at], kinds)
        }
        reported.update(edge.group for edge in edges)
        for source in sorted(experiment.seen):
            _check_changes(verdict, experiment, source, name)
    for source in sorted(_claimed(experiment.claims)):
        verdict.unseen += _unseen_from(source, experiment)
        verdict.unproved += _unseen_from(source, experiment, alone=True)
    verdict.reported = dict(reported)


def _changes(experiment: Experiment) -> list[tuple[str, Source, int]]:
    """Return the output columns, by position, that changed with each source."""
    found = {
        (output, source, at)
        for source, differences in experiment.seen.items()
        for seen in differences
        for output, difference in seen.items()
        for at in difference.columns
    }
    return sorted(found)


def _check_changes(verdict: Verdict, experiment: Experiment, source: Source, name: str) -> None:
    """Count the changes caused by a source, and record those without an edge."""
    ours, names = experiment.claims[name], experiment.base[name].names
    seen = [d[name] for d in experiment.seen[source] if name in d]
    changed = frozenset[int]().union(*(d.columns for d in seen))
    tainted = frozenset[int]().union(*(d.tainted for d in seen))
    fed = ours.fed(source)
    direct = {at for at in fed if ours.columns[source, at] & set(DIRECT)}
    verdict.changes += len(changed)
    text = ".".join(source)
    if source not in ours.rows:
        verdict.missed += [f"{text} → {names[at]}" for at in sorted(changed - fed)]
        if any(d.rest for d in seen) and not changed - fed:
            verdict.missed.append(f"{text} → which rows there are")
    verdict.missed += [f"{text} → {names[at]}, as it is" for at in sorted(tainted - direct)]


# The report


_runners: dict[str, StatementRunner] = {}


def _judge_one(work: tuple[Case, Effort]) -> Verdict:
    case, effort = work
    if case.database not in _runners:
        _runners[case.database] = StatementRunner(DATABASES[case.database]())
    return judge(_runners[case.database], case, effort)


def judge_all(cases: Sequence[Case], effort: Effort, processes: int = PROCESSES) -> list[Verdict]:
    """Return the result of every case."""
    work = [(case, effort) for case in cases]
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        found = pool.imap_unordered(_judge_one, work)
        shown = track(
            found,
            "statements",
            total=len(work),
            transient=True,
            console=Console(stderr=True),
        )
        return sorted(shown, key=lambda verdict: cases.index(verdict.case))


GROUPS = {"DIRECT": "direct", "INDIRECT": "indirect", "ROWS": "to every row"}


def tables_of(verdicts: Sequence[Verdict]) -> Iterator[Table]:
    """Yield the tables to print: counts by topic, then edges that were never seen and errors."""
    topics: dict[str, list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        topics[verdict.case.topic].append(verdict)
    rows = [_figures(topic, found) for topic, found in topics.items()]
    headings = [heading for name in GROUPS.values() for heading in (name, "never seen")]
    yield Table(
        "SQL lineage against execution",
        ("statements", "n", "runs", "changes seen", "missed", "no schema", *headings),
        [*rows, _figures("all", verdicts)],
        _notes(verdicts),
    )
    worst = sorted((v for v in verdicts if v.unseen), key=lambda v: -len(v.unseen))
    if worst:
        yield _listing("Edges that no change showed", [(v, v.unseen) for v in worst[:25]])
    wrong = [
        (f"{v.case.topic}/{v.case.name}", text)
        for v in verdicts
        for text in (*(f"missed {m}" for m in v.missed), *v.problems)
    ]
    if wrong:
        yield Table("Wrong", ("statement", "what"), wrong)


def _notes(verdicts: Sequence[Verdict]) -> tuple[str, ...]:
    reported = sum(v.reported.get(group, 0) for v in verdicts for group in GROUPS)
    unproved = sum(len(v.unproved) for v in verdicts)
    return (
        f"DuckDB {duckdb.__version__}, sqlglot {version('sqlglot')}. *Changes seen*: changing an "
        "input column changed the values, rows or row order of an output column. *Missed*: such "
        "changes without a reported edge; this must be 0. *No schema*: changes missed when no "
        "schema is known, because a name may also belong to a table of the outer query or to an "
        "earlier alias.",
        "*Direct*, *indirect* and *to every row* count the reported edges. *Never seen*: edges "
        "whose output did not change in any run.",
        f"{unproved / max(1, reported):.1%} of all edges were seen only together with another edge "
        "of the same input, for example a join key that is also selected.",
    )


def _listing(title: str, found: Iterable[tuple[Verdict, list[Edge]]]) -> Table:
    rows = [(f"{v.case.topic}/{v.case.name}", str(len(e)), _some(e)) for v, e in found]
    return Table(title, ("statement", "edges", "which"), rows)


def _figures(topic: str, verdicts: Sequence[Verdict]) -> tuple[str, ...]:
    unseen = Counter(edge.group for verdict in verdicts for edge in verdict.unseen)
    cells: list[str] = []
    for group in GROUPS:
        total = sum(verdict.reported.get(group, 0) for verdict in verdicts)
        cells += [f"{total:,}", f"{unseen[group] / total:.1%}" if total else "–"]
    return (
        topic,
        str(len(verdicts)),
        f"{sum(v.trials for v in verdicts):,}",
        f"{sum(v.changes for v in verdicts):,}",
        str(sum(len(v.missed) for v in verdicts)),
        str(sum(len(v.missed_without_schema) for v in verdicts)),
        *cells,
    )


def _some(edges: Sequence[Edge], most: int = 4) -> str:
    shown = [f"{e.source} → {e.target} ({e.kinds.lower()})" for e in edges[:most]]
    return "; ".join(shown) + ("; …" if len(edges) > most else "")


def run(*, quick: bool) -> Iterator[Table]:
    """Check every statement."""
    yield from tables_of(judge_all(read_cases(), QUICK if quick else FULL))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.sql_oracle", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="topics or statements")
    parser.add_argument("--quick", action="store_true", help="fewer changes; takes 40 seconds")
    parser.add_argument("--alone", action="store_true", help="list edges not seen alone")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables to FILE")
    arguments = parser.parse_args()
    wanted = set(arguments.names)
    cases = [c for c in read_cases() if not wanted or {c.name, c.topic} & wanted]
    verdicts = judge_all(cases, QUICK if arguments.quick else FULL)
    tables = list(tables_of(verdicts))
    if arguments.alone:
        unproved = [(v, v.unproved) for v in verdicts if v.unproved]
        tables.append(_listing("Edges not seen alone", unproved))
    for table in tables:
        print_table(table, Console(width=None))
    if arguments.markdown:
        arguments.markdown.write_text(render_markdown(tables), "utf-8")
    sys.exit(any(verdict.missed or verdict.problems for verdict in verdicts))


if __name__ == "__main__":
    main()
