"""`downriver kpis`: key figures of the whole graph."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from downriver.capture.inventory import TableInventory, read_inventory
from downriver.cli.output import (
    DisplayNames,
    FullNamesOption,
    JsonOption,
    StoreOption,
    counted,
    err,
    escape,
    out,
    print_json,
)
from downriver.errors import InvalidRequestError
from downriver.govern.kpi_limits import check_limits, find_list, parse_limits, render_badge
from downriver.service import Lineage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.model.governance import CountWithExamples, InventoryCoverage, Kpis, Share

_SHARES = (
    ("lineage coverage", "lineage_coverage", "datasets and jobs with an edge"),
    ("known upstream", "upstream_coverage", "written datasets with a source"),
    ("column lineage", "column_coverage", "columns of these, with a source"),
    ("schema", "schema_coverage", "datasets with known columns"),
    ("owner", "owner_coverage", "datasets with an owner"),
    ("documentation", "documentation_coverage", "datasets with a description"),
    ("certified-path integrity", "certified_path_integrity", "certified, upstream complete"),
    ("stale edges", "stale_edges", "not confirmed by recent runs"),
    ("failed runs", "failure_rate", "ended in the last {days} days"),
    ("on time", "on_time", "jobs with a regular schedule"),
)  # fmt: skip
_LISTS = (
    ("orphans", "orphans"),
    ("unknown downstreams", "unknown_downstreams"),
    ("jobs without inputs", "jobs_without_inputs"),
    ("possible cuts", "possible_cuts"),
    ("failing jobs", "failing_jobs"),
    ("late jobs", "late_jobs"),
    ("certified datasets", "certified"),
    ("PII columns", "pii_columns"),
    ("columns reached by PII", "pii_reach"),
)
_OF_TAGS = (("columns", "{tag} columns"), ("reached", "columns reached by {tag}"))
_EXAMPLES = 3
_TOP = 5
_TABLES = 10
_POINTS = 10
_LISTED = 100_000
_HISTORY_HEADING = f"{'':<17} datasets   jobs  coverage  blast radius   failed  certified"


InventoryOption = Annotated[
    list[str] | None,
    typer.Option(
        "--inventory",
        metavar="SOURCE",
        help="Measure coverage against the tables that exist: a file with names, dbt's "
        "catalog.json, a database URL, or `spark`. May be repeated.",
    ),
]
FailUnderOption = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-under",
        metavar="KPI=NUMBER",
        help="Exit with 1 if a KPI is below a number, as in coverage=95. May be repeated.",
    ),
]
FailOverOption = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-over",
        metavar="KPI=NUMBER",
        help="Exit with 1 if a KPI is above a number, as in orphans=0. May be repeated.",
    ),
]


def kpis(
    inventory: InventoryOption = None,
    fail_under: FailUnderOption = None,
    fail_over: FailOverOption = None,
    badge: Annotated[
        Path | None,
        typer.Option(
            "--badge",
            metavar="FILE",
            help="Also write the lineage coverage to this file as an SVG badge.",
        ),
    ] = None,
    kpi: Annotated[
        str | None,
        typer.Option(
            "--list",
            metavar="KPI",
            help="List the entities that a KPI counts, or that a share leaves out, such as "
            "owner_coverage.",
        ),
    ] = None,
    history: Annotated[
        bool, typer.Option("--history", help="Show how coverage and the other KPIs changed.")
    ] = False,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="TIME",
            help="Begin the history at this time, or a period ago (90d). The default is the first "
            "event.",
        ),
    ] = None,
    points: Annotated[
        int | None,
        typer.Option(
            "--points", metavar="N", min=1, help="Show the history at N moments. Default: 10."
        ),
    ] = None,
    full_names: FullNamesOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Show key figures of the whole graph: coverage, blast radius, failures, freshness and tags.

    The exit code is 1 if a limit of --fail-under or --fail-over is violated.
    """
    if history:
        if inventory or fail_under or fail_over or badge is not None or kpi is not None:
            raise InvalidRequestError(
                "--history",
                "cannot be combined with --inventory, --fail-under, --fail-over, --badge, --list",
            )
        _history(since, points or _POINTS, store, json=json)
        return
    if since is not None or points is not None:
        raise InvalidRequestError("--since" if since is not None else "--points", "needs --history")
    if kpi is not None:
        if inventory or fail_under or fail_over or badge is not None:
            raise InvalidRequestError(
                "--list", "cannot be combined with --inventory, --fail-under, --fail-over, --badge"
            )
        _list(kpi, store, full_names=full_names, json=json)
        return
    limits = parse_limits(fail_under or (), fail_over or ())
    inventories = [_read_inventory(place) for place in inventory or ()]
    with Lineage.open(store, create=False) as lineage:
        figures = lineage.govern.kpis()
        for listed in inventories:
            figures.inventories.append(lineage.govern.inventory_coverage(*listed))
    failures = check_limits(figures, limits)
    if json:
        print_json(figures)
    else:
        _show_kpis(figures, DisplayNames(_kpi_ids(figures), full=full_names))
    if badge is not None:
        badge.write_text(render_badge(figures), "utf-8")
    for failure in failures:
        err.print(f"[bold red]failed[/] {escape(failure)}")
    sys.exit(int(bool(failures)))


def _list(kpi: str, store: str | None, *, full_names: bool, json: bool) -> None:
    with Lineage.open(store, create=False) as lineage:
        listed = find_list(lineage.govern.kpis(examples=_LISTED), kpi, "--list")
    if json:
        print_json(listed)
        return
    names = DisplayNames(listed.examples, full=full_names)
    names.print_heading()
    for entity in listed.examples:
        out.print(f"  {names[entity]}")
    more = listed.count - len(listed.examples)
    out.print(f"{listed.count:,} in all" + (f", {more:,} not listed" if more else ""))


def _history(since: str | None, points: int, store: str | None, *, json: bool) -> None:
    with Lineage.open(store, create=False) as lineage:
        history = lineage.govern.kpi_history(since=since, points=points, certified=True)
    if json:
        print_json(history)
        return
    if not history.points:
        out.print("no history: the store has no event")
        return
    out.print(_HISTORY_HEADING)
    for point in history.points:
        radius = "–" if point.blast_radius is None else f"{point.blast_radius:g}"
        out.print(
            f"{point.at[:16]}Z {point.datasets:>8,} {point.jobs:>6,}  "
            f"{_percent(point.lineage_coverage):>8}  {radius:>12}  "
            f"{_percent(point.failure_rate):>7}  {_percent(point.certified_path_integrity):>9}"
        )


def _read_inventory(place: str) -> TableInventory:
    if place == "spark":
        from downriver.capture.spark.catalog_tables import list_catalog_tables

        return TableInventory("Spark catalog", list_catalog_tables())
    return read_inventory(place)


def _kpi_ids(figures: Kpis) -> Iterator[str]:
    for _, listed in _lists(figures):
        yield from listed.examples[:_EXAMPLES]
    for blast in figures.blast_radius.top[:_TOP]:
        yield blast.dataset


def _show_kpis(figures: Kpis, names: DisplayNames) -> None:
    names.print_heading()
    out.print(
        f"{counted(figures.datasets, 'dataset')}, {counted(figures.jobs, 'job')}, "
        f"{counted(figures.columns, 'column')}"
    )
    for label, name, meaning in _SHARES:
        share: Share = getattr(figures, name)
        counts = f"{share.count:,} of {share.total:,}"
        explanation = meaning.format(days=figures.days)
        out.print(f"  {label:<24}{_percent(share.percent):>8}  {counts:>10}  [dim]{explanation}[/]")
    for label, listed in _lists(figures):
        shown = _examples(listed, names)
        out.print(f"  {escape(label):<24}{listed.count:>8,}  {shown}".rstrip())
    _show_blast_radius(figures, names)
    for inventory in figures.inventories:
        _show_inventory(inventory)


def _lists(figures: Kpis) -> Iterator[tuple[str, CountWithExamples]]:
    for label, name in _LISTS:
        yield label, getattr(figures, name)
    for each in figures.propagating_tags:
        for name, label in _OF_TAGS:
            yield label.format(tag=each.tag), getattr(each, name)


def _show_inventory(coverage: InventoryCoverage) -> None:
    share = coverage.coverage
    out.print(
        f"inventory coverage {_percent(share.percent)}: {share.count:,} of {share.total:,} "
        f"tables of {escape(coverage.source)} have lineage"
    )
    for label, tables in (
        ("no event names", coverage.missing),
        ("without an edge", coverage.without_edges),
    ):
        if tables:
            more = f", … {len(tables) - _TABLES:,} more" if len(tables) > _TABLES else ""
            out.print(f"  {label}: {escape(', '.join(tables[:_TABLES]))}{more}")
    if coverage.not_listed:
        out.print(f"  {len(coverage.not_listed):,} datasets with lineage are not in the inventory")


def _show_blast_radius(figures: Kpis, names: DisplayNames) -> None:
    radius = figures.blast_radius
    out.print(f"blast radius: median {radius.median:g}, largest {radius.largest:,}")
    for blast in radius.top[:_TOP]:
        owners = f", owned by {', '.join(blast.owners)}" if blast.owners else ""
        out.print(f"  {blast.downstream:>5,}  {names[blast.dataset]}{escape(owners)}")
    changes = figures.change_radius
    if changes.median is not None:
        count = counted(changes.changes, "change")
        out.print(
            f"blast radius per change: median {changes.median:g}, largest {changes.largest:,} "
            f"({count} in {changes.days} days, {changes.blocked:,} blocked)"
        )


def _percent(percent: float | None) -> str:
    return "–" if percent is None else f"{percent:g} %"


def _examples(listed: CountWithExamples, names: DisplayNames) -> str:
    shown = ", ".join(names[example] for example in listed.examples[:_EXAMPLES])
    return f"{shown}, …" if listed.count > _EXAMPLES else shown
