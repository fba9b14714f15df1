"""Routes about personal data: what a column reaches, and suggested access policies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.responses import PlainTextResponse

from downriver.errors import InvalidRequestError
from downriver.govern.privacy import SqlDialect
from downriver.http.endpoint import NAMED, Endpoint, answers
from downriver.http.request import context_of, json_response, query_text, run_read
from downriver.model.trust.privacy import PrivacyReport
from downriver.store import KeyRole

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response


async def get_privacy(request: Request) -> Response:
    """Return what a person's field reaches: `?field=`."""
    privacy = context_of(request).lineage.privacy
    return json_response(await run_read(request, privacy, query_text(request, "field")))


async def get_ranger_policies(request: Request) -> Response:
    """Return suggested Apache Ranger tag policies for a field: `?field=`."""
    privacy, field = context_of(request).lineage.privacy, query_text(request, "field")

    def render() -> list[dict[str, Any]]:
        return privacy.ranger(privacy(field))

    return json_response(await run_read(request, render))


async def get_privacy_sql(request: Request) -> Response:
    """Return suggested SQL statements for a field: `?field=&dialect=`."""
    privacy, field = context_of(request).lineage.privacy, query_text(request, "field")
    dialect = request.query_params.get("dialect", SqlDialect.POSTGRES.value)
    known = [each.value for each in SqlDialect]
    if dialect not in known:
        raise InvalidRequestError("dialect", f"{dialect!r} is not one of {', '.join(known)}")

    def render() -> str:
        return privacy.sql(privacy(field), SqlDialect(dialect))

    return PlainTextResponse(await run_read(request, render))


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "GET",
        "/v1/privacy",
        get_privacy,
        KeyRole.READER,
        answers(PrivacyReport, *NAMED),
        query=("field",),
    ),
    Endpoint(
        "GET",
        "/v1/privacy/ranger",
        get_ranger_policies,
        KeyRole.READER,
        answers(list, *NAMED),
        query=("field",),
    ),
    Endpoint(
        "GET",
        "/v1/privacy/sql",
        get_privacy_sql,
        KeyRole.READER,
        answers(None, *NAMED),
        query=("field", "dialect"),
    ),
)
