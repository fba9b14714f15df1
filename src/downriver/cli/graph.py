"""`downriver graph`: a piece of the graph as a picture, or in the format of another tool."""

from __future__ import annotations

import sys
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from downriver.cli.neo4j import neo4j_driver
from downriver.cli.output import StoreOption, err
from downriver.cli.trace import (
    AsOfOption,
    DepthOption,
    EntityArgument,
    LimitOption,
    UpstreamOption,
    parse_direction,
)
from downriver.errors import InvalidRequestError
from downriver.model.answers import Direction
from downriver.service import Lineage


class Format(str, Enum):
    """What to write it in; `downriver.graph.export` has the same list."""

    mermaid = "mermaid"
    dot = "dot"
    svg = "svg"
    json = "json"
    csv = "csv"
    openlineage = "openlineage"
    cypher = "cypher"
    datahub = "datahub"


def graph(
    entity: EntityArgument,
    output_format: Annotated[
        Format, typer.Option("--format", help="What to write it in.")
    ] = Format.mermaid,
    upstream: UpstreamOption = False,
    downstream: Annotated[bool, typer.Option("--downstream", help="Where it goes to.")] = False,
    both: Annotated[bool, typer.Option("--both", help="Both directions (the default).")] = False,
    depth: DepthOption = None,
    as_of: AsOfOption = None,
    limit: LimitOption = 200,
    focus: Annotated[
        str | None,
        typer.Option("--focus", metavar="COLUMN", help="Only what this column of it touches."),
    ] = None,
    diff: Annotated[
        str | None,
        typer.Option("--diff", metavar="TIME", help="Mark what came and went since this time."),
    ] = None,
    push: Annotated[
        str | None,
        typer.Option("--push", metavar="URI", help="Write it into the Neo4j database there."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write to this file instead.")
    ] = None,
    store: StoreOption = None,
) -> None:
    """Draw or export the graph around a dataset, job or column."""
    one_way = upstream or downstream
    direction = parse_direction(upstream, downstream, both) if one_way else Direction.BOTH
    with Lineage.open(store, create=False) as lineage:
        if push is not None:
            found = lineage.piece(
                entity, direction, depth=depth, as_of=as_of, focus=focus, diff=diff, limit=limit
            )
            with neo4j_driver(push) as driver:
                count = lineage.push_to_neo4j(found, driver)
            err.print(f"wrote {count} nodes to {escape(push)}")
            return
        answer = lineage.export(
            entity,
            output_format.value,
            direction,
            depth=depth,
            as_of=as_of,
            focus=focus,
            diff=diff,
            limit=limit,
        )
    _write(answer.diagram, output)


def _write(drawing: str, output: Path | None) -> None:
    if output is None:
        sys.stdout.write(drawing)
        return
    try:
        output.write_text(drawing, "utf-8", newline="")
    except OSError as exc:
        raise InvalidRequestError("--output", f"{output}: {exc.strerror}") from exc
    err.print(f"wrote {escape(str(output))}")
