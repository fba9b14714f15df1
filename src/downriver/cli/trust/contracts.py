"""`downriver contracts`: check, apply and list data contracts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from downriver.cli.output import (
    ChangesDryRunOption,
    DisplayNames,
    FullNamesOption,
    JsonOption,
    StoreOption,
    counted,
    escape,
    out,
    print_json,
)
from downriver.cli.trust.incident import AtOption
from downriver.govern.contracts import read_contracts
from downriver.service import Lineage

if TYPE_CHECKING:
    from downriver.model.trust.contracts import ContractChecks, ContractResult

_COLOURS = {"violated": "bold red", "unknown": "yellow", "passed": "green"}
FilesHelp = "YAML files of contracts, or folders of them."


def check(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FILE|DIR]...", help=f"{FilesHelp} Default: the contracts in the store."
        ),
    ] = None,
    at: AtOption = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Also fail if a clause cannot be checked.")
    ] = False,
    record: Annotated[
        bool, typer.Option("--record/--no-record", help="Record the outcomes in the log.")
    ] = True,
    all_: Annotated[bool, typer.Option("--all", help="Also list the clauses that passed.")] = False,
    full_names: FullNamesOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Check contracts against the schemas, statistics and runs that events report.

    The exit code is 1 if a contract is violated. The outcome of a clause that cannot be checked is
    unknown. It has not passed.
    """
    contracts = read_contracts(files) if files else None
    with Lineage.open(store, create=False) as lineage:
        checks = lineage.contracts(contracts, at=at, record=record)
    if json:
        print_json(checks)
    else:
        _show(checks, full_names=full_names, passed=all_)
    sys.exit(int(not checks.passed or (strict and not checks.complete)))


def apply(
    files: Annotated[list[Path], typer.Argument(metavar="FILE|DIR...", help=FilesHelp)],
    dry_run: ChangesDryRunOption = False,
    full_names: FullNamesOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Store contracts, and show what changes.

    Applying the same contracts again changes nothing.
    """
    contracts = read_contracts(files)
    with Lineage.open(store, create=False) as lineage:
        changes = lineage.contracts.apply(contracts, done=not dry_run)
    if json:
        print_json(changes)
        return
    names = DisplayNames((change.dataset for change in changes.changes), full=full_names)
    names.print_heading()
    for change in changes.changes:
        out.print(names[change.dataset])
        for difference in change.differences:
            out.print(f"  {escape(difference)}")
    verb = "would change" if dry_run else "changed"
    out.print(f"{len(changes.changes)} of {counted(changes.declared, 'contract')} {verb}")


def list_contracts(
    at: AtOption = None,
    full_names: FullNamesOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """List the applied contracts with their outcome now. Nothing is recorded."""
    with Lineage.open(store, create=False) as lineage:
        checks = lineage.contracts(at=at, record=False)
    if json:
        print_json(checks)
        return
    names = DisplayNames((each.dataset for each in checks.contracts), full=full_names)
    names.print_heading()
    for each in checks.contracts:
        _show_contract(each, names)
    out.print(counted(len(checks.contracts), "contract"))


def _show(checks: ContractChecks, *, full_names: bool, passed: bool) -> None:
    names = DisplayNames(
        (each.dataset for each in checks.contracts if each.dataset.startswith("dataset:")),
        full=full_names,
    )
    names.print_heading()
    for each in checks.contracts:
        _show_contract(each, names)
        for clause in each.clauses:
            if clause.outcome == "passed" and not passed:
                continue
            message = clause.message
            if clause.expected and clause.expected not in message:
                message += f" (expected: {clause.expected})"
            colour = _COLOURS[clause.outcome]
            out.print(f"  [{colour}]{clause.outcome:<8}[/] {clause.clause:<14} {escape(message)}")
    violated = sum(each.outcome == "violated" for each in checks.contracts)
    unknown = sum(each.outcome == "unknown" for each in checks.contracts)
    passing = len(checks.contracts) - violated - unknown
    out.print(f"{violated} violated, {unknown} unknown, {passing} passed")
    if not checks.complete:
        clauses = counted(len(checks.blind_spots), "clause")
        out.print(f"[yellow]incomplete[/]: {clauses} cannot be checked")


def _show_contract(each: ContractResult, names: DisplayNames) -> None:
    is_known = each.dataset.startswith("dataset:")
    name = names[each.dataset] if is_known else escape(each.dataset)
    owner = f"  owned by {each.owner}" if each.owner else ""
    consumers = f"  used by {', '.join(each.consumers)}" if each.consumers else ""
    outcome = f"[{_COLOURS[each.outcome]}]{each.outcome}[/]"
    out.print(f"{outcome} {name}[dim]{escape(owner)}{escape(consumers)}[/]")
