"""Every answer of the API matches its OpenAPI description, for any request."""

from __future__ import annotations

import tempfile

import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import CHECKS, load_all_checks

from downriver.http import build_app
from downriver.service import Lineage

load_all_checks()
_folder = tempfile.TemporaryDirectory()
_lineage = Lineage.open(_folder.name)
_app = build_app(_lineage)


async def app_on_this_machine(scope, receive, send) -> None:
    """Without keys only this machine is answered: say that it is this one that asks."""
    if scope["type"] == "http":
        others = [header for header in scope["headers"] if header[0] != b"host"]
        local = {"client": ("127.0.0.1", 1), "headers": [*others, (b"host", b"localhost")]}
        scope = {**scope, **local}
    await _app(scope, receive, send)


schema = schemathesis.openapi.from_asgi("/openapi.json", app_on_this_machine)


@schema.parametrize()
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), database=None)
def test_every_answer_matches_the_openapi_description(case: schemathesis.Case) -> None:
    wanted = ("not_a_server_error", "status_code_conformance", "response_schema_conformance")
    case.call_and_validate(checks=CHECKS.get_by_names(wanted))
