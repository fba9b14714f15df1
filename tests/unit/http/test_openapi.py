"""Every answer of the API matches its OpenAPI description, for any request."""

from __future__ import annotations

import secrets
import tempfile

import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import CHECKS, load_all_checks
from tests.test_growing_inputs import cpu_limit
from tests.unit.http.test_app import TestClient

from downriver.http import build_app
from downriver.service import Lineage

load_all_checks()
_folder = tempfile.TemporaryDirectory()
_lineage = Lineage.open(_folder.name)
# A route creates keys: begin with one. Its name is random, because Hypothesis also tries the
# strings of this module, and a route revokes keys by name.
_key = _lineage.admin.create_key(secrets.token_hex(16), "admin")
_app = build_app(_lineage)


async def app_with_key(scope, receive, send) -> None:
    """Send the key with every request."""
    if scope["type"] == "http":
        others = [header for header in scope["headers"] if header[0] != b"authorization"]
        key = (b"authorization", f"Bearer {_key}".encode())
        scope = {**scope, "headers": [*others, key]}
    await _app(scope, receive, send)


schema = schemathesis.openapi.from_asgi("/openapi.json", app_with_key)


@schema.parametrize()
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), database=None)
def test_every_answer_matches_the_openapi_description(case: schemathesis.Case) -> None:
    wanted = ("not_a_server_error", "status_code_conformance", "response_schema_conformance")
    case.call_and_validate(checks=CHECKS.get_by_names(wanted))


def test_every_route_that_uses_the_store_documents_that_it_may_be_overloaded() -> None:
    operations = [
        operation for path in schema.raw_schema["paths"].values() for operation in path.values()
    ]
    using = [operation for operation in operations if "security" in operation]
    assert len(using) > 50
    assert all("503" in operation["responses"] for operation in using)


def test_the_open_description_costs_little_however_often_it_is_read() -> None:
    with cpu_limit("200 descriptions", seconds=5):
        bodies = {TestClient(_app).get("/openapi.json").content for _ in range(200)}
    assert len(bodies) == 1
