"""`downriver kpis`, `incident`, `tags` and `certified`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from downriver.cli.output import (
    DisplayNames,
    FullNamesOption,
    JsonOption,
    StoreOption,
    escape,
    out,
    print_json,
)
from downriver.cli.trace import EntityArgument
from downriver.service import Lineage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.model.governance import (
        CertifiedPaths,
        CountWithExamples,
        Incident,
        Kpis,
        Share,
        TaggedColumn,
        TagReach,
    )

_SHARES = (
    ("lineage coverage", "lineage_coverage", "datasets and jobs with at least one edge"),
    ("known upstream", "upstream_coverage", "written datasets with a known source"),
    ("column lineage", "column_coverage", "columns of written datasets with a known source"),
    ("schema", "schema_coverage", "datasets with known columns"),
    ("owner", "owner_coverage", "datasets with an owner"),
    ("documentation", "documentation_coverage", "datasets with a description"),
    ("certified-path integrity", "certified_path_integrity", "certified, upstream complete"),
    ("stale edges", "stale_edges", "edges that recent runs did not confirm"),
    ("failed runs", "failure_rate", "runs that ended in the last {days} days"),
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
_EXAMPLES = 3
_TOP = 5


def kpis(
    full_names: FullNamesOption = False, store: StoreOption = None, json: JsonOption = False
) -> None:
    """Show figures of the whole graph: coverage, blast radius, failures, freshness and tags."""
    with Lineage.open(store, create=False) as lineage:
        figures = lineage.govern.kpis()
    if json:
        print_json(figures)
    else:
        _show_kpis(figures, DisplayNames(_kpi_ids(figures), full=full_names))


def _kpi_ids(figures: Kpis) -> Iterator[str]:
    for _, name in _LISTS:
        yield from getattr(figures, name).examples[:_EXAMPLES]
    for blast in figures.blast_radius.top[:_TOP]:
        yield blast.dataset


def _show_kpis(figures: Kpis, names: DisplayNames) -> None:
    names.print_heading()
    out.print(f"{figures.datasets:,} datasets, {figures.jobs:,} jobs, {figures.columns:,} columns")
    for label, name, meaning in _SHARES:
        share: Share = getattr(figures, name)
        counted = f"{share.count:,} of {share.total:,}"
        explanation = meaning.format(days=figures.days)
        out.print(f"  {label:<26}{_percent(share):>8}  {counted:>13}  [dim]{explanation}[/]")
    for label, name in _LISTS:
        listed: CountWithExamples = getattr(figures, name)
        out.print(f"  {label:<26}{listed.count:>8,}  {_examples(listed, names)}".rstrip())
    _show_blast_radius(figures, names)


def _show_blast_radius(figures: Kpis, names: DisplayNames) -> None:
    radius = figures.blast_radius
    out.print(f"blast radius: median {radius.median:g}, largest {radius.largest:,}")
    for blast in radius.top[:_TOP]:
        owners = f", owned by {', '.join(blast.owners)}" if blast.owners else ""
        out.print(f"  {blast.downstream:>5,}  {names[blast.dataset]}{escape(owners)}")


def _percent(share: Share) -> str:
    return "–" if share.percent is None else f"{share.percent:g} %"


def _examples(listed: CountWithExamples, names: DisplayNames) -> str:
    shown = ", ".join(names[example] for example in listed.examples[:_EXAMPLES])
    return f"{shown}, …" if listed.count > _EXAMPLES else shown


_SHOWN = 8
_COLOURS = {"failing": "bold red", "drifting": "yellow", "healthy": "green"}

AtOption = Annotated[
    str | None,
    typer.Option("--at", metavar="TIME", help="Report as of this time. By default it is now."),
]


def incident(
    entity: EntityArgument,
    at: AtOption = None,
    full_names: FullNamesOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Report what is wrong with an entity: failures, likely causes, and affected entities."""
    with Lineage.open(store, create=False) as lineage:
        report = lineage.govern.incident_report(entity, at)
    if json:
        print_json(report)
    else:
        _show_incident(report, _names(report, full=full_names))


def _names(report: Incident, *, full: bool) -> DisplayNames:
    ids = [
        report.entity,
        *(failure.entity for failure in report.failures),
        *(suspect.id for suspect in report.suspects),
        *(affected.id for affected in report.affected),
    ]
    messages = [failure.message for failure in report.failures]
    reasons = [reason for suspect in report.suspects for reason in suspect.reasons]
    return DisplayNames(ids, full=full, texts=[*messages, *reasons])


def _show_incident(report: Incident, names: DisplayNames) -> None:
    names.print_heading()
    colour = _COLOURS[report.status]
    since = f" since {report.since}" if report.since else ""
    out.print(f"[{colour}]{report.status.upper()}[/] {names.label(report.entity)}{since}")
    for label, value in (
        ("last success", report.last_success),
        ("last written", report.last_written),
    ):
        if value:
            out.print(f"  {label} {value}")
    for failure in report.failures:
        place = "" if failure.entity == report.entity else f"{names.label(failure.entity)}: "
        message = names.replace_in(failure.message)
        out.print(f"  {failure.severity.value:<8} {place}{message}")
    _show_suspects(report, names)
    _show_affected(report, names)
    if not report.complete:
        out.print(
            f"[yellow]incomplete:[/] {len(report.blind_spots)} blind spots; --json lists them"
        )


def _show_suspects(report: Incident, names: DisplayNames) -> None:
    out.print(f"upstream suspects ({len(report.suspects)} of {report.looked_at} checked)")
    for suspect in report.suspects[:_SHOWN]:
        owners = f"  owned by {', '.join(suspect.owners)}" if suspect.owners else ""
        out.print(f"  {suspect.score:.2f}  {names.label(suspect.id)}{escape(owners)}")
        for reason in suspect.reasons[:_SHOWN]:
            out.print(f"        {names.replace_in(reason)}")


def _show_affected(report: Incident, names: DisplayNames) -> None:
    out.print(f"affected downstream: {report.affected_count}")
    for each in report.affected[:_SHOWN]:
        marks = [*each.tags, *(f"owned by {owner}" for owner in each.owners)]
        out.print(
            f"  {names.label(each.id)}" + (f"  ({escape(', '.join(marks))})" if marks else "")
        )
    if report.affected_count > _SHOWN:
        out.print(f"  … {report.affected_count - _SHOWN} more")
    if report.owners_to_tell:
        out.print(f"notify: {escape(', '.join(report.owners_to_tell))}")


TagArgument = Annotated[
    str,
    typer.Argument(metavar="TAG", help="A tag as events contain it, such as pii or team:sales."),
]


def tags(
    tag: TagArgument = "pii",
    full_names: FullNamesOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Show which columns a tag reaches along column edges.

    A tag propagates along copies and computations. Masking stops it.
    """
    with Lineage.open(store, create=False) as lineage:
        reach = lineage.govern.tag_reach(tag)
    if json:
        print_json(reach)
    else:
        _show_tag(reach, DisplayNames(_tag_ids(reach), full=full_names))


def _tag_ids(reach: TagReach) -> Iterator[str]:
    yield from reach.tagged
    yield from reach.datasets
    for column in (*reach.reached, *reach.stopped):
        yield column.column
        yield from column.path


def _show_tag(reach: TagReach, names: DisplayNames) -> None:
    names.print_heading()
    out.print(
        f"{escape(reach.tag)} was set on {len(reach.tagged)} columns and "
        f"{len(reach.datasets)} datasets"
    )
    for full_id in (*reach.tagged, *reach.datasets):
        out.print(f"  {names[full_id]}")
    _show_columns("reached", reach.reached, names)
    _show_columns("masked before it reached", reach.stopped, names)
    if not reach.complete:
        out.print(f"[yellow]incomplete:[/] {len(reach.blind_spots)} blind spots; --json lists them")


def _show_columns(label: str, columns: list[TaggedColumn], names: DisplayNames) -> None:
    out.print(f"{label} {len(columns)} columns")
    for column in columns:
        owners = f"  owned by {', '.join(column.owners)}" if column.owners else ""
        out.print(f"  {names[column.column]}{escape(owners)}")
        out.print(f"    from {' → '.join(names[step] for step in column.path[:-1])}")


_GAPS_SHOWN = 5


def certified(
    full_names: FullNamesOption = False, store: StoreOption = None, json: JsonOption = False
) -> None:
    """Check that the lineage upstream of every certified dataset is complete.

    The exit code is 1 if it is not.
    """
    with Lineage.open(store, create=False) as lineage:
        found = lineage.govern.certified_paths()
    if json:
        print_json(found)
    else:
        _show_certified(found, full_names=full_names)
    sys.exit(int(found.integrity.count < found.integrity.total))


def _show_certified(found: CertifiedPaths, *, full_names: bool) -> None:
    gaps = [gap for path in found.datasets for gap in path.gaps]
    ids = [*(path.dataset for path in found.datasets), *(gap.entity for gap in gaps)]
    names = DisplayNames(ids, full=full_names, texts=(gap.message for gap in gaps))
    names.print_heading()
    for path in found.datasets:
        word = "[green]intact[/]" if path.intact else "[bold red]broken[/]"
        owners = f", owned by {', '.join(path.owners)}" if path.owners else ""
        out.print(f"{word} {names[path.dataset]} ({path.upstream} upstream{escape(owners)})")
        for gap in path.gaps[:_GAPS_SHOWN]:
            out.print(f"       {names.label(gap.entity)}: {names.replace_in(gap.message)}")
    out.print(f"{found.integrity.count} of {found.integrity.total} certified paths are intact")
