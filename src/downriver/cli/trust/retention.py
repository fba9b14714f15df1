"""`downriver forget`, `prune` and `redact`: remove entities from answers, and erase names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from downriver.cli.output import (
    DisplayNames,
    FullNamesOption,
    JsonOption,
    StoreOption,
    counted,
    escape,
    out,
    print_json,
)
from downriver.cli.trace import EntityArgument
from downriver.errors import InvalidRequestError
from downriver.impact import find_author
from downriver.service import Lineage

if TYPE_CHECKING:
    from downriver.model.trust.retention import Pruned, RetiredEdge, RetiredEntity, RetiredRuns

ReasonOption = Annotated[
    str, typer.Option("--reason", metavar="TEXT", help="The reason. The log records it.")
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only list what would be removed.")]
_SHOWN = 50
_REMAINING_SHOWN = 10


def forget(
    entity: EntityArgument,
    reason: ReasonOption = "",
    edge_to: Annotated[
        str | None,
        typer.Option(
            "--edge-to", metavar="TARGET", help="Remove only the edge from the entity to TARGET."
        ),
    ] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Show the entity in answers again.")] = False,
    runs: Annotated[
        bool, typer.Option("--runs", help="With --undo: list the pruned runs of the job again.")
    ] = False,
    dry_run: DryRunOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Remove a dataset, job or registered flow from answers, or with --edge-to one edge of it.

    Its events stay in the log. A later event that mentions it adds it to answers again.
    """
    if runs:
        _restore_runs(entity, store, undo=undo, dry_run=dry_run, json=json)
        return
    if edge_to is not None:
        _forget_edge(entity, edge_to, reason, store, undo=undo, dry_run=dry_run, json=json)
        return
    with Lineage.open(store, create=False) as lineage:
        forgotten = lineage.retention.forget(
            entity, reason=reason, by=find_author(Path.cwd()), undo=undo, done=not dry_run
        )
    if json:
        print_json(forgotten)
        return
    verb = "restored" if undo else "forgotten"
    for each in forgotten.entities:
        out.print(f"{'would be ' if dry_run else ''}{verb}: {escape(each.id)}")


def _restore_runs(job: str, store: str | None, *, undo: bool, dry_run: bool, json: bool) -> None:
    if not undo:
        raise InvalidRequestError(
            "--runs", "needs --undo; `downriver prune --older-than 90d` removes old runs"
        )
    with Lineage.open(store, create=False) as lineage:
        restored = lineage.retention.restore_runs(job, by=find_author(Path.cwd()), done=not dry_run)
    if json:
        print_json(restored)
        return
    verb = "would be restored" if dry_run else "restored"
    out.print(f"{verb}: {counted(restored.runs, 'run')} of {escape(restored.job)}")


def _forget_edge(
    source: str,
    target: str,
    reason: str,
    store: str | None,
    *,
    undo: bool,
    dry_run: bool,
    json: bool,
) -> None:
    with Lineage.open(store, create=False) as lineage:
        edge = lineage.retention.forget_edge(
            source, target, reason=reason, by=find_author(Path.cwd()), undo=undo, done=not dry_run
        )
    if json:
        print_json(edge)
        return
    verb = f"{'would be ' if dry_run else ''}{'restored' if undo else 'forgotten'}"
    out.print(f"{verb}: {escape(edge.source)} → {escape(edge.target)}")


def prune(
    older_than: Annotated[
        str,
        typer.Option(
            "--older-than",
            metavar="PERIOD",
            help="Remove what no event has mentioned for this long, such as 90d.",
        ),
    ],
    dry_run: DryRunOption = False,
    full_names: FullNamesOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Remove from answers the datasets and jobs that no event has mentioned for a long time.

    Edges that recent runs of their job do not confirm are removed, too, and old runs, except the
    latest 20 of each job. The upstream of certified datasets stays, and so do jobs that run rarely.
    What is removed is listed and recorded in the log, and `downriver forget --undo` restores it.
    Findings that were resolved before that time are deleted.
    """
    with Lineage.open(store, create=False) as lineage:
        pruned = lineage.retention.prune(older_than, by=find_author(Path.cwd()), done=not dry_run)
    if json:
        print_json(pruned)
    else:
        _show(pruned, full_names=full_names)


def _show(pruned: Pruned, *, full_names: bool) -> None:
    listed = [*pruned.retired[:_SHOWN], *pruned.protected[:_SHOWN]]
    edges = [*pruned.retired_edges[:_SHOWN], *pruned.protected_edges[:_SHOWN]]
    runs = [*pruned.retired_runs[:_SHOWN], *pruned.protected_runs[:_SHOWN]]
    ids = [entity.id for entity in listed] + [end for e in edges for end in (e.source, e.target)]
    ids += [each.job for each in runs]
    names = DisplayNames(ids, full=full_names)
    names.print_heading()
    verb = "removed" if pruned.done else "would be removed"
    out.print(f"{len(pruned.retired):,} {verb}, last mentioned before {pruned.before}")
    _list(pruned.retired, names)
    out.print(f"{len(pruned.protected):,} of the same age are protected")
    _list(pruned.protected, names, reasons=True)
    if edges:
        out.print(f"{counted(len(pruned.retired_edges), 'stale edge')} {verb}")
        _list_edges(pruned.retired_edges, names)
        out.print(f"{counted(len(pruned.protected_edges), 'stale edge')} protected")
        _list_edges(pruned.protected_edges, names, reasons=True)
    if runs:
        out.print(f"{counted(sum(r.runs for r in pruned.retired_runs), 'old run')} {verb}")
        _list_runs(pruned.retired_runs, names)
        out.print(f"{counted(sum(r.runs for r in pruned.protected_runs), 'old run')} protected")
        _list_runs(pruned.protected_runs, names, reasons=True)
    out.print(f"{counted(pruned.resolved_findings, 'resolved finding')} {verb}")


def _list(entities: list[RetiredEntity], names: DisplayNames, *, reasons: bool = False) -> None:
    for entity in entities[:_SHOWN]:
        reason = f": {entity.reason}" if reasons else ""
        out.print(f"  {names.label(entity.id)}, last seen {entity.last_seen}{escape(reason)}")
    if len(entities) > _SHOWN:
        out.print(f"  … {len(entities) - _SHOWN:,} more (--json)")


def _list_edges(edges: list[RetiredEdge], names: DisplayNames, *, reasons: bool = False) -> None:
    for edge in edges[:_SHOWN]:
        reason = f": {edge.reason}" if reasons else ""
        ends = f"{names.label(edge.source)} → {names.label(edge.target)}"
        out.print(f"  {ends}, last seen {edge.last_seen}{escape(reason)}")
    if len(edges) > _SHOWN:
        out.print(f"  … {len(edges) - _SHOWN:,} more (--json)")


def _list_runs(retired: list[RetiredRuns], names: DisplayNames, *, reasons: bool = False) -> None:
    for each in retired[:_SHOWN]:
        reason = f": {each.reason}" if reasons else f" before {each.before}"
        out.print(f"  {names.label(each.job)}, {counted(each.runs, 'run')}{escape(reason)}")
    if len(retired) > _SHOWN:
        out.print(f"  … {len(retired) - _SHOWN:,} more (--json)")


def redact(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A name or a mail address, as a whole word.")
    ],
    reason: ReasonOption = "",
    dry_run: DryRunOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Erase a name from the facets of all events: owners, descriptions, tags, errors.

    The hash chain of the log stays intact: a new entry names the changed ones. This cannot be
    undone. Names of datasets, jobs and columns stay.
    """
    with Lineage.open(store, create=False) as lineage:
        redaction = lineage.retention.redact(
            name, reason=reason, by=find_author(Path.cwd()), done=not dry_run
        )
    if json:
        print_json(redaction)
        return
    verb = "would be redacted" if dry_run else "redacted"
    noun = "log entry" if redaction.entries == 1 else "log entries"
    out.print(f"{redaction.entries:,} {noun} {verb}")
    if redaction.remaining:
        listed = ", ".join(map(str, redaction.remaining[:_REMAINING_SHOWN]))
        more = len(redaction.remaining) - _REMAINING_SHOWN
        rest = f" and {more} more" if more > 0 else ""
        out.print(f"[yellow]the name remains outside facets in log entries[/] {listed}{rest}")
    if redaction.entries and redaction.done:
        out.print(
            "Backups, evidence packs and lakes that were made before still contain the name. "
            "Build a lake again with `downriver lake ingest --from-store` and `lake build`."
        )
