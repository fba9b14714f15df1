"""`downriver graph`: a picture of a piece of the graph."""

from __future__ import annotations

import sys
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from downriver.cli.output import StoreOption, err, render_json
from downriver.cli.trace import (
    AsOfOption,
    DepthOption,
    EntityArgument,
    LimitOption,
    UpstreamOption,
    parse_direction,
)
from downriver.errors import InvalidRequestError
from downriver.graph.draw import render_dot, render_mermaid, render_svg
from downriver.model.answers import Direction
from downriver.service import Lineage


class Format(str, Enum):
    """What to draw with."""

    mermaid = "mermaid"
    dot = "dot"
    json = "json"
    svg = "svg"


_RENDERERS = {
    Format.mermaid: render_mermaid,
    Format.dot: render_dot,
    Format.json: render_json,
    Format.svg: render_svg,
}


def graph(
    entity: EntityArgument,
    output_format: Annotated[
        Format, typer.Option("--format", help="What to draw.")
    ] = Format.mermaid,
    upstream: UpstreamOption = False,
    downstream: Annotated[bool, typer.Option("--downstream", help="Where it goes to.")] = False,
    both: Annotated[bool, typer.Option("--both", help="Both directions (the default).")] = False,
    depth: DepthOption = None,
    as_of: AsOfOption = None,
    limit: LimitOption = 200,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write to this file instead.")
    ] = None,
    store: StoreOption = None,
) -> None:
    """Draw the graph around a dataset, job or column as Mermaid, DOT, SVG or JSON."""
    one_way = upstream or downstream
    direction = parse_direction(upstream, downstream, both) if one_way else Direction.BOTH
    with Lineage.open(store, create=False) as lineage:
        answer = lineage.trace(entity, direction, depth=depth, as_of=as_of, limit=limit)
    drawing = _RENDERERS[output_format](answer)
    if output is None:
        sys.stdout.write(drawing)
        return
    try:
        output.write_text(drawing, "utf-8")
    except OSError as exc:
        raise InvalidRequestError("--output", f"{output}: {exc.strerror}") from exc
    err.print(f"wrote {escape(str(output))}")
