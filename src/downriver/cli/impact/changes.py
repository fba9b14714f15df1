"""How a change is said on the command line: the same for `impact` and `fix`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from downriver.errors import InvalidRequestError
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

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.service import Lineage

ChangedArgument = Annotated[
    str,
    typer.Argument(
        metavar="ENTITY", help="What changes: a dataset, or a column as in orders.amount."
    ),
]
RenameOption = Annotated[str | None, typer.Option("--rename-to", help="It gets this name.")]
DropOption = Annotated[bool, typer.Option("--drop", help="It goes.")]
AddOption = Annotated[
    str | None, typer.Option("--add", metavar="COLUMN", help="The dataset gets this column.")
]
RequiredOption = Annotated[
    bool, typer.Option("--required", help="With --add: NOT NULL, and no default.")
]
TypeOption = Annotated[str | None, typer.Option("--type", help="The column gets this type.")]
NullableOption = Annotated[
    bool | None,
    typer.Option("--nullable/--not-null", help="The column may be null, or may no longer be."),
]
DeprecateOption = Annotated[bool, typer.Option("--deprecate", help="It is to go later.")]
LogicOption = Annotated[bool, typer.Option("--logic", help="It is computed in another way.")]


class ChangeOptions(NamedTuple):
    """The options that say what happens to an entity."""

    rename_to: str | None
    drop: bool
    add: str | None
    required: bool
    type: str | None
    nullable: bool | None
    deprecate: bool
    logic: bool


def parse_change_options(lineage: Lineage, entity: str, said: ChangeOptions) -> list[Change]:
    """Return the changes that options say; exactly what is said, and at least one."""
    dataset, column = lineage.split_entity(entity)
    if said.required and not said.add:
        raise InvalidRequestError("--required", "goes with --add")
    found = list(
        _table_changes(dataset, said) if column is None else _changes(dataset, column, said)
    )
    if not found:
        raise InvalidRequestError(
            "ENTITY",
            "say what happens to it: --rename-to, --drop, --add, --type, --nullable, --not-null, "
            "--deprecate or --logic",
        )
    return found


def _changes(dataset: str, column: str, said: ChangeOptions) -> Iterator[Change]:
    if said.add:
        raise InvalidRequestError("--add", "goes with a dataset, not with a column")
    if said.rename_to:
        yield ColumnRename(dataset=dataset, column=column, to=said.rename_to)
    if said.drop:
        yield ColumnDrop(dataset=dataset, column=column)
    if said.type:
        yield TypeChange(dataset=dataset, column=column, to=said.type)
    if said.nullable is not None:
        yield NullabilityChange(dataset=dataset, column=column, nullable=said.nullable)
    if said.deprecate:
        yield Deprecation(dataset=dataset, column=column)
    if said.logic:
        yield LogicChange(dataset=dataset, columns=[column])


def _table_changes(dataset: str, said: ChangeOptions) -> Iterator[Change]:
    if said.add:
        yield ColumnAdd(
            dataset=dataset, column=said.add, data_type=said.type or "", required=said.required
        )
    elif said.type or said.nullable is not None:
        raise InvalidRequestError("ENTITY", f"{dataset} is a dataset; name one of its columns")
    if said.rename_to:
        yield TableRename(dataset=dataset, to=said.rename_to)
    if said.drop:
        yield TableDrop(dataset=dataset)
    if said.deprecate:
        yield Deprecation(dataset=dataset)
    if said.logic:
        yield LogicChange(dataset=dataset)
