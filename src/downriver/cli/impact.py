"""`downriver impact`: the consumers that a change breaks."""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Annotated, NamedTuple

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
from downriver.errors import InvalidRequestError
from downriver.impact.report.names import list_entity_ids, name_impact
from downriver.impact.report.text import (
    describe_left_out,
    describe_not_rebuilt,
    describe_unread,
    list_places,
    listed_effects,
)
from downriver.model.changes import (
    Change,
    ColumnAdd,
    ColumnDrop,
    ColumnRename,
    Deprecation,
    LogicChange,
    NullabilityChange,
    TableDrop,
    TableRename,
    TypeChange,
)
from downriver.model.verdicts import EffectSeverity
from downriver.service import Lineage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.model.verdicts import Effect, Impact

ChangedArgument = Annotated[
    str,
    typer.Argument(
        metavar="ENTITY",
        help="The dataset that changes, or one column of it, as in orders.amount.",
    ),
]
ColumnsArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="COLUMN", help="With --drop: columns of the dataset to drop."),
]
RenameToOption = Annotated[
    str | None,
    typer.Option("--rename-to", metavar="NAME", help="Rename the dataset or column to NAME."),
]
RenameOption = Annotated[
    list[str] | None,
    typer.Option(
        "--rename", metavar="OLD:NEW", help="Rename a column of the dataset. May be repeated."
    ),
]
DropOption = Annotated[
    bool,
    typer.Option(
        "--drop", help="Drop the dataset or column. With COLUMN: drop these columns of the dataset."
    ),
]
AddOption = Annotated[
    list[str] | None,
    typer.Option(
        "--add", metavar="COLUMN[:TYPE]", help="Add a column to the dataset. May be repeated."
    ),
]
AddRequiredOption = Annotated[
    list[str] | None,
    typer.Option(
        "--add-required",
        metavar="COLUMN[:TYPE]",
        help="Add a column that is NOT NULL and has no default. May be repeated.",
    ),
]
RequiredOption = Annotated[
    bool, typer.Option("--required", help="With --add: the column is NOT NULL and has no default.")
]
TypeOption = Annotated[
    str | None,
    typer.Option(
        "--type",
        metavar="TYPE",
        help="Change the type of the column. With --add: the type of the new column.",
    ),
]
RetypeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--retype",
        metavar="COLUMN:TYPE",
        help="Change the type of a column of the dataset. May be repeated.",
    ),
]
NullableOption = Annotated[
    bool | None,
    typer.Option("--nullable/--not-null", help="Allow NULL in the column, or forbid it."),
]
DeprecateOption = Annotated[
    bool, typer.Option("--deprecate", help="Deprecate the dataset or column: list its consumers.")
]
ConsumersOption = Annotated[
    str | None,
    typer.Option(
        "--select",
        metavar="SELECTOR",
        help="Consider only consumers that match a selector, such as 'tag:finance'. The others are "
        "only counted.",
    ),
]
LogicOption = Annotated[
    bool,
    typer.Option("--logic", help="Change how the values of the dataset or column are computed."),
]

_DDL = re.compile(r"\s*(?:alter|drop|rename|truncate|create|exec|execute)\s+\S", re.IGNORECASE)


def is_ddl(entity: str) -> bool:
    """Return whether a text is a DDL statement, and not the name of a dataset."""
    return _DDL.match(entity) is not None


class ChangeOptions(NamedTuple):
    """The values of the options that describe changes."""

    columns: tuple[str, ...] = ()
    rename_to: str | None = None
    rename: tuple[str, ...] = ()
    drop: bool = False
    add: tuple[str, ...] = ()
    add_required: tuple[str, ...] = ()
    required: bool = False
    type: str | None = None
    retype: tuple[str, ...] = ()
    nullable: bool | None = None
    deprecate: bool = False
    logic: bool = False

    def check(self) -> None:
        """Raise an error if options exclude each other."""
        if self.required and not self.add:
            raise InvalidRequestError("--required", "needs --add")
        if self.columns and not self.drop:
            listed = ", ".join(self.columns)
            raise InvalidRequestError("COLUMN", f"{listed}: columns need --drop")


def parse_change_options(lineage: Lineage, entity: str, options: ChangeOptions) -> list[Change]:
    """Return the changes that the options describe: at least one."""
    options.check()
    dataset, column = lineage.trace.split_entity(entity)
    changes = list(
        _dataset_changes(dataset, options)
        if column is None
        else _column_changes(dataset, column, options)
    )
    if not changes:
        raise InvalidRequestError(
            "ENTITY",
            "name the change: --rename, --rename-to, --drop, --add, --add-required, --retype, "
            "--type, --nullable, --not-null, --deprecate or --logic",
        )
    return changes


def _column_changes(dataset: str, column: str, options: ChangeOptions) -> Iterator[Change]:
    for name in ("columns", "rename", "add", "add_required", "retype"):
        if getattr(options, name):
            option = "--drop COLUMN" if name == "columns" else f"--{name.replace('_', '-')}"
            raise InvalidRequestError(option, "needs a dataset as ENTITY, not a column")
    if options.rename_to:
        yield ColumnRename(dataset=dataset, column=column, to=options.rename_to)
    if options.drop:
        yield ColumnDrop(dataset=dataset, column=column)
    if options.type:
        yield TypeChange(dataset=dataset, column=column, to=options.type)
    if options.nullable is not None:
        yield NullabilityChange(dataset=dataset, column=column, nullable=options.nullable)
    if options.deprecate:
        yield Deprecation(dataset=dataset, column=column)
    if options.logic:
        yield LogicChange(dataset=dataset, columns=[column])


def _dataset_changes(dataset: str, options: ChangeOptions) -> Iterator[Change]:
    if options.nullable is not None or (options.type and not options.add):
        raise InvalidRequestError("ENTITY", f"{dataset} is a dataset; name one of its columns")
    for pair in options.rename:
        old, new = _split_pair("--rename", pair, "OLD:NEW")
        yield ColumnRename(dataset=dataset, column=old, to=new)
    for column in options.columns:
        yield ColumnDrop(dataset=dataset, column=column)
    for pair in options.retype:
        column, kind = _split_pair("--retype", pair, "COLUMN:TYPE")
        yield TypeChange(dataset=dataset, column=column, to=kind)
    for added, required in ((options.add, options.required), (options.add_required, True)):
        for given in added:
            name, _, kind = given.partition(":")
            kind = kind.strip() or options.type or ""
            yield ColumnAdd(dataset=dataset, column=name, data_type=kind, required=required)
    if options.rename_to:
        yield TableRename(dataset=dataset, to=options.rename_to)
    if options.drop and not options.columns:
        yield TableDrop(dataset=dataset)
    if options.deprecate:
        yield Deprecation(dataset=dataset)
    if options.logic:
        yield LogicChange(dataset=dataset)


def _split_pair(option: str, pair: str, form: str) -> tuple[str, str]:
    left, _, right = pair.partition(":")
    if not left.strip() or not right.strip():
        raise InvalidRequestError(option, f"{pair!r} is not of the form {form}")
    return left.strip(), right.strip()


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
        str | None,
        typer.Option("--dialect", metavar="DIALECT", help="The SQL dialect of the DDL."),
    ] = None,
    select: ConsumersOption = None,
    full_names: FullNamesOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Show which consumers break or change when a dataset changes.

    Options that describe changes may be combined.

    Examples:
      downriver impact orders.total --rename-to amount
      downriver impact orders --rename total:amount --drop country
      downriver impact "ALTER TABLE orders DROP COLUMN country"
    """
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
            result = _impact_of_ddl(lineage, entity, dialect, options, select)
        else:
            result = lineage.impact(parse_change_options(lineage, entity, options), select)
    if json:
        print_json(result)
    else:
        names = DisplayNames(list_entity_ids(result), full=full_names)
        names.print_heading()
        show_impact(name_impact(result, names.short))


def _impact_of_ddl(
    lineage: Lineage, sql: str, dialect: str | None, options: ChangeOptions, select: str | None
) -> Impact:
    """Return the impact of DDL. It is an error if no part of the DDL can be read."""
    if options != ChangeOptions():
        raise InvalidRequestError(
            "ENTITY", "is DDL, so options that describe changes are not allowed"
        )
    impact = lineage.impact.of_ddl(sql, dialect, select=select)
    if impact.unread and not impact.changes:
        raise InvalidRequestError("ENTITY", describe_unread(impact.unread[0]))
    return impact


def show_impact(result: Impact) -> None:
    """Print the effects, the most severe first, then the completeness of the answer."""
    out.print(f"[bold]{escape('; '.join(result.changes))}[/]")
    for effect in listed_effects(result):
        _show_effect(effect, describe_not_rebuilt(result, effect))
    not_rebuilt = f"{len(result.not_rebuilt)} not rebuilt, " if result.not_rebuilt else ""
    state = "[green]complete[/]" if result.complete else "[yellow]incomplete[/]"
    out.print(
        f"{state} · {len(result.breaking)} breaking, {counted(len(result.warnings), 'warning')}, "
        f"{not_rebuilt}{result.untouched} not affected"
    )
    if result.left_out is not None:
        out.print(escape(describe_left_out(result.left_out)))
    for unread in result.unread:
        out.print(f"  [red]![/] {escape(describe_unread(unread))}")
    for spot in result.blind_spots[:_SPOTS_SHOWN]:
        out.print(f"  [yellow]?[/] {escape(spot.entity)}: {escape(spot.message)}")
    more = len(result.blind_spots) - _SPOTS_SHOWN
    if more > 0:
        out.print(f"  [yellow]?[/] and {more} more; --json shows them")


def _show_effect(effect: Effect, not_rebuilt: str) -> None:
    colour = _COLOURS[effect.severity]
    certified = " [magenta]certified[/]" if effect.certified else ""
    owners = f" [dim]· {escape(', '.join(effect.owners))}[/]" if effect.owners else ""
    out.print(
        f"  [{colour}]{effect.severity.value:<8}[/] [bold]{escape(effect.name)}[/] "
        f"[dim]{escape(effect.asset_type)}[/]{certified}{owners}"
    )
    basis = "" if effect.basis == "simulated" else f" [dim]({effect.basis.replace('_', ' ')})[/]"
    out.print(f"           {escape(effect.reason)}{basis}")
    if not_rebuilt:
        out.print(f"           {escape(not_rebuilt)}")
    if len(effect.path) > 1:
        out.print(f"           [dim]{escape(' → '.join(effect.path))}[/]")
    for place, clause, text in islice(list_places(effect.references), _REFERENCES_SHOWN):
        words = f" {clause}" if clause else ""
        suffix = escape(f": {text}") if text else ""
        out.print(f"           [cyan]{escape(place)}[/]{words}{suffix}")
