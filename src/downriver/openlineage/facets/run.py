"""Facets of a run: its error, its scheduled time, the engine that ran it."""

from __future__ import annotations

import msgspec

from downriver import __version__
from downriver.errors import InvalidEventError
from downriver.openlineage.facets.base import parse_facet, render_facet
from downriver.openlineage.wire import parse_time

ERROR_MESSAGE = "errorMessage"
NOMINAL_TIME = "nominalTime"
PROCESSING_ENGINE = "processing_engine"


class _ErrorMessage(msgspec.Struct):
    message: str = ""


class _NominalTime(msgspec.Struct):
    nominalStartTime: str = ""  # noqa: N815


def parse_error_message(body: bytes | None) -> str:
    """Return the message of an errorMessage facet, "" when there is none."""
    return "" if body is None else parse_facet(body, _ErrorMessage).message


def parse_nominal_start(body: bytes | None) -> int | None:
    """Return the time for which a run was scheduled, in µs since the epoch."""
    if body is None:
        return None
    try:
        return parse_time(parse_facet(body, _NominalTime).nominalStartTime, "nominalStartTime")
    except InvalidEventError:
        return None


def render_error_message(message: str, stack: str = "", *, language: str = "python") -> msgspec.Raw:
    """Return the facet of the error that ended a run."""
    content = {"stackTrace": stack} if stack else {}
    return render_facet(
        "ErrorMessageRunFacet", "1-0-1", message=message, programmingLanguage=language, **content
    )


def render_processing_engine(name: str, version: str) -> msgspec.Raw:
    """Return the facet that names the engine of a run."""
    return render_facet(
        "ProcessingEngineRunFacet",
        "1-1-1",
        name=name,
        version=version,
        openlineageAdapterVersion=__version__,
    )
