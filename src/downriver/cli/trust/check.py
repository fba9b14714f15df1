"""`downriver check`: rules that the lineage itself must satisfy."""

from __future__ import annotations

import sys
from collections import Counter
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from downriver import __version__
from downriver.cli.output import (
    DisplayNames,
    FullNamesOption,
    JsonOption,
    StoreOption,
    counted,
    out,
    print_json,
    render_json,
)
from downriver.errors import InvalidRequestError
from downriver.govern.checks.config import read_checks_file, read_expectations
from downriver.govern.checks.runner import render_checks_sarif
from downriver.model.trust.checks import CheckSeverity
from downriver.service import Lineage

if TYPE_CHECKING:
    from downriver.govern.checks.config import CheckConfig
    from downriver.model.trust.checks import LineageChecks

_COLOURS = {"error": "bold red", "warning": "yellow", "info": "dim"}
_SHOWN = 10

FilesOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--expect",
        metavar="FILE",
        help="Read edges that must or must not exist from this YAML file. May be repeated.",
    ),
]


def check(
    rule: Annotated[
        list[str] | None,
        typer.Option("--rule", metavar="RULE", help="Run only this rule. May be repeated."),
    ] = None,
    skip: Annotated[
        list[str] | None,
        typer.Option("--skip", metavar="RULE", help="Do not run this rule. May be repeated."),
    ] = None,
    expect: FilesOption = None,
    fail_on: Annotated[
        CheckSeverity | None,
        typer.Option(
            "--fail-on", help="Fail on violations of this severity or higher. Default: error."
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="Read the `checks` section of this file. Default: downriver.yml.",
        ),
    ] = None,
    sarif: Annotated[
        Path | None,
        typer.Option(
            "--sarif", metavar="FILE", help="Also write the violations to this file as SARIF 2.1.0."
        ),
    ] = None,
    all_: Annotated[
        bool, typer.Option("--all", help="List every violation, not only the first of each rule.")
    ] = False,
    full_names: FullNamesOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Check the whole graph against rules: orphans, missing inputs and owners, expected edges.

    The exit code is 1 if a violation has the severity `error`, or that of --fail-on.
    """
    wanted = _configure(read_checks_file(config), expect or (), fail_on)
    with Lineage.open(store, create=False) as lineage:
        checks = lineage.checks(wanted, only=rule or (), skip=skip or ())
    if json:
        print_json(checks)
    else:
        _show(checks, full_names=full_names, shown=len(checks.violations) if all_ else _SHOWN)
    if sarif is not None:
        try:
            sarif.write_text(render_json(render_checks_sarif(checks, __version__)), "utf-8")
        except OSError as exc:
            raise InvalidRequestError("--sarif", f"{sarif}: {exc.strerror}") from exc
    sys.exit(int(not checks.passed))


def _configure(
    config: CheckConfig, files: list[Path] | tuple[()], fail_on: CheckSeverity | None
) -> CheckConfig:
    stated = [read_expectations(path) for path in files]
    return msgspec.structs.replace(
        config,
        fail_on=fail_on or config.fail_on,
        expect=[*config.expect, *(edge for each in stated for edge in each.expect)],
        never=[*config.never, *(edge for each in stated for edge in each.never)],
    )


def _show(checks: LineageChecks, *, full_names: bool, shown: int) -> None:
    messages = [each.message for each in checks.violations]
    names = DisplayNames(
        (each.entity for each in checks.violations), full=full_names, texts=messages
    )
    names.print_heading()
    for rule, group in groupby(checks.violations, key=lambda each: each.rule):
        violations = list(group)
        for each in violations[:shown]:
            colour = _COLOURS[each.severity.value]
            where = names.label(each.entity) if ":" in each.entity else each.entity
            out.print(
                f"[{colour}]{each.severity.value:<7}[/] {rule:<22} {where}"
                f"  [dim]{names.replace_in(each.message)}[/]"
            )
        if len(violations) > shown:
            out.print(f"        {rule:<22} … {len(violations) - shown:,} more (--all)")
    counts = Counter(each.severity.value for each in checks.violations)
    errors, warnings = counted(counts["error"], "error"), counted(counts["warning"], "warning")
    summary = f"{errors}, {warnings}, {counts['info']:,} info"
    ignored = f", {checks.ignored:,} ignored" if checks.ignored else ""
    verdict = "passed" if checks.passed else "[bold red]failed[/]"
    out.print(f"{verdict} · {counted(len(checks.rules), 'rule')} on "
              f"{counted(checks.datasets, 'dataset')} and {counted(checks.jobs, 'job')}: "
              f"{summary}{ignored}")  # fmt: skip
    if not checks.complete:
        out.print(f"[yellow]incomplete[/]: {counted(len(checks.blind_spots), 'blind spot')}")
