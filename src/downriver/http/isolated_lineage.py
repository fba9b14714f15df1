"""The lineage behind `/mcp`: calls that read code run in a worker process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from downriver.http.code_requests import FAILED, ask_worker, request_payload
from downriver.http.v1.impact import analyze_change, suggest_fix
from downriver.http.v1.registration import register_sql
from downriver.impact import Fix
from downriver.model.verdicts import ImpactAnswer
from downriver.sdk.backend import LocalLineage
from downriver.sdk.remote import error_of_response
from downriver.service.capture import SqlCapture

if TYPE_CHECKING:
    from downriver.http.code_requests import AnswerCode
    from downriver.impact import Policy, SourceFiles
    from downriver.isolation import WorkerPool
    from downriver.model.verdicts import ImpactRequest
    from downriver.service import Lineage

T = TypeVar("T")


class IsolatedLineage(LocalLineage):
    """A local store whose questions about code are answered in worker processes."""

    def __init__(self, lineage: Lineage, workers: WorkerPool) -> None:
        super().__init__(lineage)
        self._workers = workers

    def capture_sql(
        self, sql: str, *, dialect: str | None, description: str, ran: bool
    ) -> SqlCapture:
        """Read lineage from SQL and register it."""
        body = {"sql": sql, "dialect": dialect, "description": description, "ran": ran}
        return self._ask(register_sql, body, SqlCapture)

    def analyze_impact(self, request: ImpactRequest, policy: Policy | None = None) -> ImpactAnswer:
        """Return the effects of a change and the verdict of a policy (None: the default policy)."""
        body = {**msgspec.to_builtins(request), "policy": policy}
        return self._ask(analyze_change, body, ImpactAnswer)

    def suggest_fix(self, request: ImpactRequest, code: SourceFiles | None) -> Fix:
        """Write the patch for a change to the repository of the server, the only code here."""
        del code
        return self._ask(suggest_fix, msgspec.to_builtins(request), Fix)

    def _ask(self, function: AnswerCode, body: Any, kind: type[T]) -> T:
        raw = msgspec.json.encode(body)
        payload = request_payload(self.lineage, function, raw)
        if payload is None:  # a store in memory: no other process can open it
            answer: T = function(self.lineage, raw)
            return answer
        answered = ask_worker(self._workers, payload)
        if answered.status >= FAILED:
            raise error_of_response("the server", answered.status, answered.body)
        return msgspec.json.decode(answered.body, type=kind)
