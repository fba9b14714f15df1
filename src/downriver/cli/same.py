"""`downriver same` and `downriver cuts`: names of one dataset."""

from __future__ import annotations

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
from downriver.errors import InvalidRequestError
from downriver.service import Lineage

if TYPE_CHECKING:
    from downriver.model.answers import PossibleCuts, SameStatements

_FirstName = Annotated[str, typer.Argument(metavar="DATASET", help="A dataset.")]
_SecondName = Annotated[str, typer.Argument(metavar="OTHER", help="Another name of it.")]
_Undo = Annotated[
    bool,
    typer.Option(
        "--undo",
        help="Record that the two are different: separate them, or dismiss a possible cut.",
    ),
]
_List = Annotated[bool, typer.Option("--list", help="List the recorded statements.")]


def same(
    dataset: _FirstName = "",
    other: _SecondName = "",
    undo: _Undo = False,
    list_all: _List = False,
    full_names: FullNamesOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Record that two names are one dataset. Traces, impact and the gate then treat them as one.

    The statement is an event in the log. `downriver cuts` lists the names that may be one dataset.
    """
    with Lineage.open(store, create=False) as lineage:
        if list_all:
            statements = lineage.identity.statements()
            print_json(statements) if json else _show_statements(statements, full=full_names)
            return
        if not (dataset and other):
            raise InvalidRequestError("other", "give two datasets, or --list")
        statement = lineage.identity.state_same(dataset, other, same=not undo)
    if json:
        print_json(statement)
        return
    names = DisplayNames([statement.one, statement.other], full=full_names)
    names.print_heading()
    result = "are one dataset" if statement.same else "are different datasets"
    out.print(f"{names[statement.one]} and {names[statement.other]} {result}")


def _show_statements(found: SameStatements, *, full: bool) -> None:
    ids = [name for s in found.statements for name in (s.one, s.other)]
    names = DisplayNames(ids, full=full)
    names.print_heading()
    for statement in found.statements:
        relation = "is the same as" if statement.same else "is different from"
        out.print(
            f"{names[statement.one]} {relation} {names[statement.other]}  [dim]{statement.at}[/]"
        )
    out.print(f"{len(found.statements)} statements")


def cuts(
    full_names: FullNamesOption = False, store: StoreOption = None, json: JsonOption = False
) -> None:
    """List possible cuts: two names, one read and one written, that may be one dataset.

    A trace ends at such a name and is not complete. Join the two with `downriver same`, or dismiss
    the pair with `downriver same --undo`.
    """
    with Lineage.open(store, create=False) as lineage:
        found = lineage.identity.possible_cuts()
    if json:
        print_json(found)
    else:
        _show_cuts(found, full=full_names)


def _show_cuts(found: PossibleCuts, *, full: bool) -> None:
    names = DisplayNames(
        [name for cut in found.cuts for name in (cut.read, cut.written)], full=full
    )
    names.print_heading()
    for cut in found.cuts:
        out.print(f"{names[cut.read]} is read, {names[cut.written]} is written")
        out.print(f"  [dim]they differ in {cut.difference}[/]")
        out.print(f"  {escape(cut.command)}")
    out.print(f"{len(found.cuts)} possible cuts")
