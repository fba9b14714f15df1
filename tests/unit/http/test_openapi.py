"""The API is what its own description says, whatever is sent to it."""

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
schema = schemathesis.openapi.from_asgi("/openapi.json", build_app(_lineage))


@schema.parametrize()
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), database=None)
def test_every_answer_is_one_that_is_described(case: schemathesis.Case) -> None:
    wanted = ("not_a_server_error", "status_code_conformance", "response_schema_conformance")
    case.call_and_validate(checks=CHECKS.get_by_names(wanted))
