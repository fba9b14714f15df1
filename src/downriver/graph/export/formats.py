"""Every format a trace can be written in, in one table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from downriver.errors import InvalidRequestError
from downriver.graph.draw import render_dot, render_mermaid, render_svg

if TYPE_CHECKING:
    from collections.abc import Callable

    from downriver.model.answers import Trace


def render_json(trace: Trace) -> str:
    """Return a trace as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(trace), indent=2).decode() + "\n"


FORMATS: dict[str, Callable[[Trace], str]] = {
    "mermaid": render_mermaid,
    "dot": render_dot,
    "svg": render_svg,
    "json": render_json,
}


def render(trace: Trace, output_format: str) -> str:
    """Return a trace in a format; an unknown one is an error that lists them."""
    renderer = FORMATS.get(output_format.strip().lower())
    if renderer is None:
        wanted = ", ".join(FORMATS)
        raise InvalidRequestError("format", f"{output_format!r} is not one of {wanted}")
    return renderer(trace)
