"""`downriver graph`, `select`, `same` and `cuts`: show a part of the graph, and join names."""

from __future__ import annotations

import os
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast
from urllib.parse import urlsplit

import typer

from downriver.cli.output import (
    ENTITY,
    DisplayNames,
    FullNamesOption,
    JsonOption,
    OutputOption,
    StoreOption,
    counted,
    err,
    escape,
    out,
    print_json,
    write_exactly,
)
from downriver.cli.trace import (
    AsOfOption,
    DepthOption,
    LimitOption,
    ReadersOption,
    UpstreamOption,
    parse_direction,
)
from downriver.errors import (
    InvalidRequestError,
    MissingDependencyError,
    ServerError,
    ServerUnreachableError,
)
from downriver.model.answers import Direction
from downriver.service import Lineage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.export.cypher import CypherDriver
    from downriver.model.answers import PossibleCuts, SameStatements

_SCHEMES = frozenset({"bolt", "bolt+s", "bolt+ssc", "neo4j", "neo4j+s", "neo4j+ssc"})


@contextmanager
def neo4j_driver(uri: str) -> Iterator[CypherDriver]:
    """Connect as NEO4J_USERNAME with NEO4J_PASSWORD. Its errors become Downriver errors."""
    if uri.partition("://")[0] not in _SCHEMES or not urlsplit(uri).hostname:
        raise InvalidRequestError("--push", f"{uri!r} is not bolt://HOST:PORT or neo4j://HOST")
    try:
        import neo4j
        from neo4j.exceptions import DriverError, Neo4jError, ServiceUnavailable
    except ModuleNotFoundError as exc:
        raise MissingDependencyError("neo4j", "neo4j") from exc
    name, password = os.environ.get("NEO4J_USERNAME", ""), os.environ.get("NEO4J_PASSWORD", "")
    try:
        with neo4j.GraphDatabase.driver(uri, auth=(name, password) if name else None) as driver:
            driver.verify_connectivity()
            yield cast("CypherDriver", driver)
    except ServiceUnavailable as exc:
        raise ServerUnreachableError(uri, str(exc)) from exc
    except (Neo4jError, DriverError) as exc:
        raise ServerError(uri, str(exc)) from exc


class GraphFormat(str, Enum):
    """The formats of `downriver.export`."""

    mermaid = "mermaid"
    dot = "dot"
    svg = "svg"
    json = "json"
    csv = "csv"
    openlineage = "openlineage"
    cypher = "cypher"
    datahub = "datahub"
    atlas = "atlas"


def graph(
    entity: Annotated[str | None, ENTITY] = None,
    output_format: Annotated[
        GraphFormat,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="Write mermaid, dot, svg, json, csv, openlineage, cypher, datahub or atlas.",
        ),
    ] = GraphFormat.mermaid,
    upstream: UpstreamOption = False,
    downstream: Annotated[
        bool, typer.Option("--downstream", help="Show what is downstream of the entity.")
    ] = False,
    both: Annotated[
        bool, typer.Option("--both", help="Show both directions. This is the default.")
    ] = False,
    depth: DepthOption = None,
    as_of: AsOfOption = None,
    limit: LimitOption = 200,
    readers: ReadersOption = False,
    focus: Annotated[
        str | None,
        typer.Option(
            "--focus",
            metavar="COLUMN",
            help="Show only the lineage of this column of the dataset.",
        ),
    ] = None,
    select: Annotated[
        str | None,
        typer.Option(
            "--select",
            metavar="SELECTOR",
            help="Instead of ENTITY: show the datasets and jobs that match a selector, such as "
            "'+orders+2 tag:pii'.",
        ),
    ] = None,
    diff: Annotated[
        str | None,
        typer.Option(
            "--diff", metavar="TIME", help="Mark what was added or removed since this time."
        ),
    ] = None,
    push: Annotated[
        str | None,
        typer.Option(
            "--push",
            metavar="URI",
            help="Write the graph to the Neo4j database at this URI instead of printing it.",
        ),
    ] = None,
    output: OutputOption = None,
    store: StoreOption = None,
) -> None:
    """Draw or export the graph around a dataset, job or column."""
    one_way = upstream or downstream
    direction = parse_direction(upstream, downstream, both) if one_way else Direction.BOTH
    if (entity is None) == (select is None):
        raise InvalidRequestError("ENTITY", "give either an entity or --select")
    with Lineage.open(store, create=False) as lineage:
        if push is not None:
            subgraph = (
                lineage.export.selected_subgraph(select, as_of=as_of, diff=diff, limit=limit)
                if entity is None
                else lineage.export.subgraph(
                    entity,
                    direction,
                    depth=depth,
                    as_of=as_of,
                    focus=focus,
                    diff=diff,
                    limit=limit,
                    readers=readers,
                )
            )
            with neo4j_driver(push) as driver:
                count = lineage.export.push_to_neo4j(subgraph, driver)
            err.print(f"wrote {counted(count, 'node')} to {escape(push)}")
            return
        answer = (
            lineage.export.selection(
                select, output_format.value, as_of=as_of, diff=diff, limit=limit
            )
            if entity is None
            else lineage.export(
                entity,
                output_format.value,
                direction,
                depth=depth,
                as_of=as_of,
                focus=focus,
                diff=diff,
                limit=limit,
                readers=readers,
            )
        )
    _write(answer.diagram, output)


def select(
    selector: Annotated[
        str,
        typer.Argument(
            metavar="SELECTOR",
            help="orders, +orders+2, @orders, stg_*, tag:pii, owner:ana, namespace:pg*, type:view. "
            "A space is a union, a comma an intersection, --exclude a difference.",
        ),
    ],
    exclude: Annotated[
        str | None,
        typer.Option("--exclude", metavar="SELECTOR", help="Leave out what this selects."),
    ] = None,
    as_of: AsOfOption = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """List the datasets and jobs that a selector matches, one id in each line."""
    whole = selector if exclude is None else f"{selector} exclude {exclude}"
    with Lineage.open(store, create=False) as lineage:
        selection = lineage.select(whole, as_of=as_of)
    if json:
        print_json(selection)
        return
    for name in selection.ids:
        out.print(escape(name))
    for criterion in selection.unknown:
        err.print(f"{escape(criterion)} selects nothing")


def _write(drawing: str, output: Path | None) -> None:
    if output is None:
        write_exactly(drawing)
        return
    try:
        output.write_text(drawing, "utf-8", newline="")
    except OSError as exc:
        raise InvalidRequestError("--output", f"{output}: {exc.strerror}") from exc
    err.print(f"wrote {escape(str(output))}")


# Names of one dataset

_FirstName = Annotated[
    str, typer.Argument(metavar="DATASET", help="A dataset: a name or a full id.")
]
_SecondName = Annotated[
    str, typer.Argument(metavar="OTHER", help="A second name of the same dataset.")
]
_Undo = Annotated[
    bool,
    typer.Option(
        "--undo",
        help="Record that the two names are different datasets.",
    ),
]
_List = Annotated[bool, typer.Option("--list", help="List what was recorded about names.")]


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

    The statement is recorded in the log. `downriver cuts` lists pairs of names that may be one
    dataset.
    """
    with Lineage.open(store, create=False) as lineage:
        if list_all:
            statements = lineage.identity.statements()
            print_json(statements) if json else _show_statements(statements, full=full_names)
            return
        if not (dataset and other):
            raise InvalidRequestError("OTHER", "give two datasets, or --list")
        statement = lineage.identity.state_same(dataset, other, same=not undo)
    if json:
        print_json(statement)
        return
    names = DisplayNames([statement.one, statement.other], full=full_names)
    names.print_heading()
    result = "are one dataset" if statement.same else "are different datasets"
    out.print(f"{names[statement.one]} and {names[statement.other]} {result}")


def _show_statements(statements: SameStatements, *, full: bool) -> None:
    ids = [name for s in statements.statements for name in (s.one, s.other)]
    names = DisplayNames(ids, full=full)
    names.print_heading()
    for statement in statements.statements:
        relation = "is the same as" if statement.same else "is different from"
        out.print(
            f"{names[statement.one]} {relation} {names[statement.other]}  [dim]{statement.at}[/]"
        )
    out.print(counted(len(statements.statements), "statement"))


def cuts(
    full_names: FullNamesOption = False, store: StoreOption = None, json: JsonOption = False
) -> None:
    """List possible cuts: two names, one read and one written, that may be one dataset.

    A trace that ends at such a name is incomplete. If the two names are one dataset, run `downriver
    same`. If they are different datasets, run `downriver same --undo`.
    """
    with Lineage.open(store, create=False) as lineage:
        possible = lineage.identity.possible_cuts()
    if json:
        print_json(possible)
    else:
        _show_cuts(possible, full=full_names)


def _show_cuts(possible: PossibleCuts, *, full: bool) -> None:
    names = DisplayNames(
        [name for cut in possible.cuts for name in (cut.read, cut.written)], full=full
    )
    names.print_heading()
    for cut in possible.cuts:
        out.print(f"{names[cut.read]} is read, {names[cut.written]} is written")
        out.print(f"  [dim]they differ in {cut.difference}[/]")
        out.print(f"  {escape(cut.command)}")
    out.print(counted(len(possible.cuts), "possible cut"))
    for spot in possible.blind_spots:
        out.print(f"[yellow]not complete[/]: {escape(spot.entity)}: {escape(spot.message)}")
