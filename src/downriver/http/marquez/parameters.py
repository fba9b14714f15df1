"""Parameters that the routes of Marquez share."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

from downriver.http.request import query_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request

T = TypeVar("T")

MOST_LISTED = 1_000  # rows of a page, whatever `limit` asks for
_MOST = 999_999_999
PAGE = ("limit", "offset")


class ListPage(NamedTuple):
    """A part of a list."""

    limit: int
    offset: int

    def of(self, rows: Sequence[T]) -> list[T]:
        """Return this part of all rows."""
        return list(rows[self.offset : self.offset + self.limit])


def read_page(request: Request, default: int = 100) -> ListPage:
    """Return the page that a request asks for."""
    limit = query_number(request, "limit", default, _MOST) or 0
    return ListPage(min(limit, MOST_LISTED), query_number(request, "offset", 0, _MOST) or 0)
