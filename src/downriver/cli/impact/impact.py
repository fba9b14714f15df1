"""`downriver impact`: what breaks when something changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from downriver.cli.impact.changes import (
    AddOption,
    AddRequiredOption,
    ChangeOptions,
    ColumnsArgument,
    DeprecateOption,
    DropOption,
    LogicOption,
    NullableOption,
    RenameOption,
    RenameToOption,
    RequiredOption,
    RetypeOption,
    TypeOption,
    is_ddl,
    parse_change_options,
)
from downriver.cli.output import JsonOption, StoreOption, escape, out, print_json
from downriver.errors import InvalidRequestError
from downriver.impact.report.text import describe_unread, format_location
from downriver.model.verdicts import EffectSeverity
from downriver.service import Lineage

if TYPE_CHECKING:
    from downriver.model.verdicts import Effect, Impact

ChangedOrDdlArgument = Annotated[
    str,
    typer.Argument(
        metavar="ENTITY|DDL",
        help="The dataset that changes, or one column of it, as in orders.amount; or DDL in "
        "quotes, as in 'ALTER TABLE orders DROP COLUMN amount'.",
    ),
]
_COLOURS = {
    EffectSeverity.BREAKING: "bold red",
    EffectSeverity.WARNING: "yellow",
    EffectSeverity.NONE: "dim",
}
_REFERENCES_SHOWN = 5
_SPOTS_SHOWN = 8


def impact(
    entity: ChangedOrDdlArgument,
    columns: ColumnsArgument = None,
    rename: RenameOption = None,
    rename_to: RenameToOption = None,
    drop: DropOption = False,
    retype: RetypeOption = None,
    type: TypeOption = None,  # noqa: A002
    add: AddOption = None,
    add_required: AddRequiredOption = None,
    required: RequiredOption = False,
    nullable: NullableOption = None,
    deprecate: DeprecateOption = False,
    logic: LogicOption = False,
    dialect: Annotated[
        str | None, typer.Option("--dialect", help="The SQL dialect, if ENTITY is DDL.")
    ] = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Show which consumers break or change when a dataset changes. Options may be combined."""
    options = ChangeOptions(
        columns=tuple(columns or ()),
        rename_to=rename_to,
        rename=tuple(rename or ()),
        drop=drop,
        add=tuple(add or ()),
        add_required=tuple(add_required or ()),
        required=required,
        type=type,
        retype=tuple(retype or ()),
        nullable=nullable,
        deprecate=deprecate,
        logic=logic,
    )
    with Lineage.open(store, create=False) as lineage:
        if is_ddl(entity):
            found = _impact_of_ddl(lineage, entity, dialect, options)
        else:
            found = lineage.impact(parse_change_options(lineage, entity, options))
    if json:
        print_json(found)
    else:
        show_impact(found)


def _impact_of_ddl(
    lineage: Lineage, sql: str, dialect: str | None, options: ChangeOptions
) -> Impact:
    """Return what DDL does; DDL of which nothing can be read is an error."""
    if options != ChangeOptions():
        raise InvalidRequestError("ENTITY", "is DDL: it takes no options that describe changes")
    impact = lineage.impact.of_ddl(sql, dialect)
    if impact.unread and not impact.changes:
        raise InvalidRequestError("ENTITY", describe_unread(impact.unread[0]))
    return impact


def show_impact(found: Impact) -> None:
    """Print the effects, the worst first, then how complete the answer is."""
    out.print(f"[bold]{escape('; '.join(found.changes))}[/]")
    for effect in found.effects:
        _show_effect(effect)
    state = "[green]complete[/]" if found.complete else "[yellow]incomplete[/]"
    out.print(
        f"{state} · {len(found.breaking)} breaking, {len(found.warnings)} warnings, "
        f"{found.untouched} untouched"
    )
    for unread in found.unread:
        out.print(f"  [red]![/] {escape(describe_unread(unread))}")
    for spot in found.blind_spots[:_SPOTS_SHOWN]:
        out.print(f"  [yellow]?[/] {escape(spot.entity)}: {escape(spot.message)}")
    more = len(found.blind_spots) - _SPOTS_SHOWN
    if more > 0:
        out.print(f"  [yellow]?[/] and {more} more; --json shows them")


def _show_effect(effect: Effect) -> None:
    colour = _COLOURS[effect.severity]
    certified = " [magenta]certified[/]" if effect.certified else ""
    owners = f" [dim]· {escape(', '.join(effect.owners))}[/]" if effect.owners else ""
    out.print(
        f"  [{colour}]{effect.severity.value:<8}[/] [bold]{escape(effect.name)}[/] "
        f"[dim]{escape(effect.asset_type)}[/]{certified}{owners}"
    )
    basis = "" if effect.basis == "simulated" else f" [dim]({effect.basis.replace('_', ' ')})[/]"
    out.print(f"           {escape(effect.reason)}{basis}")
    if len(effect.path) > 1:
        out.print(f"           [dim]{escape(' → '.join(effect.path))}[/]")
    for reference in effect.references[:_REFERENCES_SHOWN]:
        place = format_location(reference)
        if place:
            clause = f" {reference.clause}" if reference.clause != "other" else ""
            text = f": {reference.text}" if reference.text else ""
            out.print(f"           [cyan]{escape(place)}[/]{clause}{escape(text)}")
