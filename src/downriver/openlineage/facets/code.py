"""Our own facet of a job: where its code is, and which columns that code names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from downriver.openlineage.facets.base import read_facet

if TYPE_CHECKING:
    from collections.abc import Mapping

CODE = "downriver_code"


class CodeReference(msgspec.Struct):
    """One place where code names a column of a dataset.

    A `conditional` one uses the column only if it is there, or takes it along with all others.
    """

    namespace: str = ""
    name: str = ""
    field: str = ""
    line: int = 0
    clause: str = "other"
    conditional: bool = False
    text: str = ""


class CodeFacet(msgspec.Struct):
    """A job's code: its file, the line it begins at, and `raw`, the template it was made from."""

    path: str = ""
    line: int = 0
    references: list[CodeReference] | None = None
    raw: str = ""


def read_code(facets: Mapping[str, bytes]) -> CodeFacet | None:
    """Return what a job's facets say of its code, if they say anything."""
    body = facets.get(CODE)
    return None if body is None else read_facet(body, CodeFacet)
