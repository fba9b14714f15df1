"""`downriver gate` decides whether a change may ship. `downriver fix` writes a patch for it."""

from __future__ import annotations

import sys
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from downriver import __version__, settings
from downriver.cli.impact import (
    ChangedArgument,
    ChangeOptions,
    ColumnsArgument,
    ConsumersOption,
    DropOption,
    RenameOption,
    RenameToOption,
    RetypeOption,
    parse_change_options,
)
from downriver.cli.output import (
    EXIT_FAILED,
    DisplayNames,
    FullNamesOption,
    JsonOption,
    StoreOption,
    err,
    escape,
    print_json,
    render_json,
    write,
    write_exactly,
)
from downriver.cli.policy import PolicyOption, RepoOption
from downriver.errors import DownriverError, InvalidRequestError, StoreNotFoundError
from downriver.graph.names.short_names import is_full_id
from downriver.impact import (
    SourceFolder,
    decode_text,
    find_author,
    read_changes_file,
    read_ddl,
    read_policy,
    with_unread,
    with_waiver,
)
from downriver.impact.report import (
    name_verdict,
    render_explanation,
    render_github,
    render_markdown,
    render_sarif,
    render_text,
    short_names,
)
from downriver.impact.report.text import format_location
from downriver.impact.verify import VerifyOptions
from downriver.model.control_characters import escape_line
from downriver.model.unread import Unread, UnreadReason
from downriver.model.verdicts import Decision, EntityMention
from downriver.service import Lineage
from downriver.store import MEMORY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.impact import Fix
    from downriver.impact.changes.commits import DecodedText
    from downriver.model.verdicts import Impact, Verdict

_CODES = {Decision.APPROVED: 0, Decision.BLOCKED: 1, Decision.CAUTION: 3}


class VerdictFormat(str, Enum):
    """How a verdict is printed."""

    TEXT = "text"
    MARKDOWN = "markdown"
    JSON = "json"
    SARIF = "sarif"
    GITHUB = "github"


def gate(
    changes: Annotated[
        Path | None,
        typer.Option("--changes", metavar="FILE", help="Read changes from this YAML or JSON file."),
    ] = None,
    ddl: Annotated[
        Path | None,
        typer.Option("--ddl", metavar="FILE", help="Read changes from this SQL migration."),
    ] = None,
    dialect: Annotated[
        str | None,
        typer.Option("--dialect", metavar="DIALECT", help="The SQL dialect of the migration."),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(
            "--base", metavar="COMMIT", help="Compare this commit with --head or the working tree."
        ),
    ] = None,
    head: Annotated[
        str | None,
        typer.Option(
            "--head",
            metavar="COMMIT",
            help="The commit with the change. Default: the working tree.",
        ),
    ] = None,
    repo: RepoOption = None,
    policy: PolicyOption = None,
    output: Annotated[
        VerdictFormat,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="Print the verdict as text, markdown, json, sarif or github.",
        ),
    ] = VerdictFormat.TEXT,
    summary: Annotated[
        Path | None,
        typer.Option(
            "--summary", metavar="FILE", help="Also write the verdict as Markdown to this file."
        ),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show the result of each rule of the policy.")
    ] = False,
    allow_caution: Annotated[
        bool, typer.Option("--allow-caution", help="Exit with 0 if the decision is CAUTION.")
    ] = False,
    acknowledge: Annotated[
        str | None,
        typer.Option(
            "--acknowledge",
            metavar="REASON",
            help="Waive all findings of this run. The store records the author and the reason.",
        ),
    ] = None,
    emit_selector: Annotated[
        bool,
        typer.Option(
            "--emit-selector",
            help="Print only the models to rebuild, as a selector. Notes go to standard error.",
        ),
    ] = False,
    verify: Annotated[
        str | None,
        typer.Option(
            "--verify",
            metavar="URL",
            help="Build the affected dbt models of both commits in a scratch schema of this "
            "database (duckdb://PATH or postgresql://…), and compare them.",
        ),
    ] = None,
    verify_schema: Annotated[
        str,
        typer.Option(
            "--verify-schema",
            metavar="SCHEMA",
            help="The schema into which dbt builds, if several schemas have a model's table.",
        ),
    ] = "",
    verify_scratch: Annotated[
        str,
        typer.Option(
            "--verify-scratch",
            metavar="SCHEMA",
            help="The name of the scratch schema, which must not exist.",
        ),
    ] = "downriver_verify",
    verify_timeout: Annotated[
        float,
        typer.Option(
            "--verify-timeout",
            metavar="SECONDS",
            min=0.001,
            help="Stop a statement after this time.",
        ),
    ] = 60.0,
    verify_rows: Annotated[
        int,
        typer.Option(
            "--verify-rows",
            metavar="ROWS",
            min=0,
            help="Compare the values of tables with at most this many rows.",
        ),
    ] = 1_000_000,
    select: ConsumersOption = None,
    full_names: FullNamesOption = False,
    store: StoreOption = None,
) -> None:
    """Decide by policy whether a change may ship.

    Give the change as one of --changes, --ddl and --base. Exit codes: 0 APPROVED, 1 BLOCKED,
    3 CAUTION, 2 if no decision is possible.

    Examples:
      downriver gate --base origin/main
      downriver gate --ddl migration.sql --dialect postgres
    """
    if sum(given is not None for given in (changes, ddl, base)) != 1:
        raise InvalidRequestError("gate", "give exactly one of --changes, --ddl and --base")
    if acknowledge is not None and not acknowledge.strip():
        raise InvalidRequestError("--acknowledge", "needs a reason")
    for option, value in (
        ("--head", head),
        ("--repo", repo),
        ("--emit-selector", emit_selector or None),
        ("--verify", verify),
    ):
        if value is not None and base is None:
            raise InvalidRequestError(option, "needs --base")
    options = None
    if verify is not None:
        options = VerifyOptions(
            url=verify,
            schema=verify_scratch,
            target=verify_schema,
            timeout=verify_timeout,
            rows=verify_rows,
        )
    try:
        rules = read_policy(policy, repo)
        if acknowledge is not None:
            rules = with_waiver(rules, acknowledge, find_author(repo or Path.cwd()))
        with _open(store, base if acknowledge is None else None) as lineage:
            asked = read_changes_file(changes) if changes is not None else []
            if ddl is not None:
                impact = _of_migration(lineage, ddl, dialect, select)
                asked = [located.change for located in read_ddl(_read(ddl).text, dialect).changes]
            else:
                impact = (
                    lineage.impact(asked, select)
                    if asked
                    else lineage.impact.of_commits(
                        repo or Path.cwd(), base or "", head, options, select
                    )
                )
            verdict = lineage.impact.gate(impact, rules, by=find_author(repo or Path.cwd()))
            shown = output is VerdictFormat.MARKDOWN or summary is not None
            patch = (
                lineage.impact.fix(asked, SourceFolder(Path.cwd())).diff if shown and asked else ""
            )
    except DownriverError as error:
        _cannot_decide(error, output)
        raise
    shown_verdict = name_verdict(verdict, None if full_names else short_names(verdict.impact))
    if emit_selector:
        _print_rebuild(verdict.impact)
    elif output in (VerdictFormat.JSON, VerdictFormat.SARIF):
        _print(verdict, output, explain, patch)
    else:
        _print(shown_verdict, output, explain, patch)
    if summary is not None:
        summary.write_text(render_markdown(shown_verdict, patch), "utf-8")
    allowed = allow_caution and verdict.decision is Decision.CAUTION
    raise typer.Exit(0 if allowed else _CODES[verdict.decision])


def _open(store: str | None, base: str | None) -> Lineage:
    """Open the store. A comparison of commits needs none: their code is read from Git."""
    try:
        return Lineage.open(store, create=False)
    except StoreNotFoundError:
        if base is None or store is not None or settings.read_text(settings.STORE):
            raise
        return Lineage.open(MEMORY)


def _of_migration(lineage: Lineage, path: Path, dialect: str | None, select: str | None) -> Impact:
    """Return the impact of a migration. Bytes that are not text are reported as not read."""
    decoded = _read(path)
    impact = lineage.impact.of_ddl(decoded.text, dialect, str(path), select)
    if decoded.bad_line:
        reason = UnreadReason.ENCODING
        unread = Unread(path=str(path), line=decoded.bad_line, reason=reason)
        return with_unread(impact, [unread])
    return impact


def _read(path: Path) -> DecodedText:
    try:
        return decode_text(path.read_bytes())
    except OSError as exc:
        raise InvalidRequestError("--ddl", f"{path}: {exc.strerror}") from exc


def _print_rebuild(impact: Impact) -> None:
    """Print the selector, and to standard error the models that need a full refresh."""
    plan = impact.rebuild
    write(" ".join(map(escape_line, plan.models)) + "\n")
    for name in plan.backfill:
        sys.stderr.write(
            f"backfill: {escape_line(name)} is incremental; build it with --full-refresh\n"
        )
    for name in plan.tests:
        sys.stderr.write(f"test: {escape_line(name)}\n")


def _print(verdict: Verdict, output: VerdictFormat, explain: bool, patch: str) -> None:
    match output:
        case VerdictFormat.JSON:
            print_json(verdict)
        case VerdictFormat.SARIF:
            write(render_json(render_sarif(verdict, __version__)))
        case VerdictFormat.GITHUB:
            write(render_github(verdict))
        case VerdictFormat.MARKDOWN:
            write(render_markdown(verdict, patch))
        case VerdictFormat.TEXT:
            write(render_text(verdict))
    if explain:
        stream = sys.stdout if output is VerdictFormat.TEXT else sys.stderr
        stream.write(render_explanation(verdict))


def _cannot_decide(error: DownriverError, output: VerdictFormat) -> None:
    """Report that no decision is possible, which counts as blocked."""
    reason = escape_line(error.message)
    if output in (VerdictFormat.TEXT, VerdictFormat.MARKDOWN):
        write(f"DECISION: BLOCKED\nREASON: cannot decide: {reason}\n")
    elif output is VerdictFormat.GITHUB:
        write(f"::error title=downriver::cannot decide: {reason}\n")
    if output is not VerdictFormat.TEXT:
        sys.stderr.write(f"error: {reason}\n")
        raise typer.Exit(EXIT_FAILED)


_PLACES_SHOWN = 20
_EXIT_EMPTY = 1


def fix(
    entity: ChangedArgument,
    columns: ColumnsArgument = None,
    rename: RenameOption = None,
    rename_to: RenameToOption = None,
    drop: DropOption = False,
    retype: RetypeOption = None,
    type: Annotated[  # noqa: A002
        str | None, typer.Option("--type", metavar="TYPE", help="Change the type of the column.")
    ] = None,
    root: Annotated[
        Path,
        typer.Option(
            "--root",
            metavar="DIR",
            help="The folder that contains the code: paths are relative to it.",
        ),
    ] = Path(),
    plan: Annotated[
        bool, typer.Option("--plan", help="Also show the steps of the change without downtime.")
    ] = False,
    full_names: FullNamesOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Write a patch for the consumers that a change breaks.

    The patch goes to standard output, for `git apply`. Standard error lists the places that a
    person must change. If the patch is empty, standard error has the reason, and the exit code
    is 1.

    Examples:
      downriver fix orders.total --rename-to amount > rename.patch
      downriver fix orders --retype id:bigint --plan
    """
    options = ChangeOptions(
        columns=tuple(columns or ()),
        rename_to=rename_to,
        rename=tuple(rename or ()),
        drop=drop,
        type=type,
        retype=tuple(retype or ()),
    )
    with Lineage.open(store, create=False) as lineage:
        changes = parse_change_options(lineage, entity, options)
        patch = lineage.impact.fix(changes, SourceFolder(root))
    if json:
        print_json(patch)
        return
    write_exactly(patch.diff)
    names = DisplayNames(_entity_ids(patch), full=full_names)
    _show_steps(patch, names)
    for step in patch.plan if plan else ():
        err.print(f"  [bold]·[/] {escape(step)}")
    if not patch.patches:
        err.print(f"[red]no patch[/]: {_why_empty(patch, names)}")
        raise typer.Exit(_EXIT_EMPTY)


def _entity_ids(patch: Fix) -> Iterator[str]:
    yield from patch.remaining
    for step in patch.to_decide:
        yield from (part.id for part in step.reason_parts if isinstance(part, EntityMention))
        if is_full_id(step.consumer):
            yield step.consumer


def _why_empty(patch: Fix, names: DisplayNames) -> str:
    """Return why a patch is empty."""
    if patch.absent:
        return f"not found below --root: {escape(', '.join(patch.absent[:_PLACES_SHOWN]))}"
    if patch.to_decide:
        return "the places above need a decision"
    if patch.remaining:
        consumers = ", ".join(names[consumer] for consumer in patch.remaining[:_PLACES_SHOWN])
        return f"the code of {consumers} is not known"
    return "no consumer is affected"


def _show_steps(found: Fix, names: DisplayNames) -> None:
    for patch in found.patches:
        state = "[green]verified[/]" if patch.verified else "[yellow]not verified[/]"
        err.print(f"{state} {escape(patch.path)}")
    for place in found.to_decide[:_PLACES_SHOWN]:
        where = format_location(place.reference) if place.reference is not None else ""
        reason = "".join(
            escape(part) if isinstance(part, str) else names[part.id] for part in place.reason_parts
        )
        err.print(f"[red]decide[/] {escape(where) or names[place.consumer]}: {reason}")
    if len(found.to_decide) > _PLACES_SHOWN:
        err.print(f"[red]decide[/] … {len(found.to_decide) - _PLACES_SHOWN} more; see --json")
    if found.verified and found.patches:
        err.print("[green]verified[/]: with this patch no consumer downstream is affected")
