"""`downriver impact`: what breaks when something changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.cli.impact.changes import (
    AddOption,
    ChangedArgument,
    ChangeOptions,
    DeprecateOption,
    DropOption,
    LogicOption,
    NullableOption,
    RenameOption,
    RequiredOption,
    TypeOption,
    parse_change_options,
)
from downriver.cli.output import JsonOption, StoreOption, escape, out, print_json
from downriver.impact.report.text import format_location
from downriver.model.verdicts import EffectSeverity
from downriver.service import Lineage

if TYPE_CHECKING:
    from downriver.model.verdicts import Effect, Impact

_COLOURS = {
    EffectSeverity.BREAKING: "bold red",
    EffectSeverity.WARNING: "yellow",
    EffectSeverity.NONE: "dim",
}
_REFERENCES_SHOWN = 5
_SPOTS_SHOWN = 8


def impact(
    entity: ChangedArgument,
    rename_to: RenameOption = None,
    drop: DropOption = False,
    add: AddOption = None,
    required: RequiredOption = False,
    type: TypeOption = None,  # noqa: A002
    nullable: NullableOption = None,
    deprecate: DeprecateOption = False,
    logic: LogicOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Show who breaks, who changes and who is untouched when a dataset or column changes."""
    said = ChangeOptions(rename_to, drop, add, required, type, nullable, deprecate, logic)
    with Lineage.open(store, create=False) as lineage:
        found = lineage.impact(parse_change_options(lineage, entity, said))
    if json:
        print_json(found)
    else:
        show_impact(found)


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
