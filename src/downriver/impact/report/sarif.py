"""A verdict as SARIF 2.1.0, which code hosts show next to the lines it is about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from downriver.model.verdicts import Outcome

if TYPE_CHECKING:
    from downriver.model.verdicts import Effect, Verdict

_LEVELS = {"breaking": "error", "warning": "warning", "none": "note"}
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_MEANINGS = {
    Outcome.FAILS: "A consumer fails",
    Outcome.LOSES: "A consumer loses a column it reads",
    Outcome.MAY_FAIL: "A consumer may fail",
    Outcome.CHANGES: "A consumer's values or columns change",
    Outcome.STALE: "A consumer receives old data",
    Outcome.DEPRECATED: "A consumer uses what is to go",
}


def render_sarif(verdict: Verdict, version: str) -> dict[str, Any]:
    """Return the SARIF log: one result for each place in the code of each consumer."""
    results = [result for effect in verdict.impact.effects for result in _results(effect)]
    driver = {
        "name": "downriver",
        "version": version,
        "rules": [
            {"id": outcome.value, "shortDescription": {"text": meaning}}
            for outcome, meaning in _MEANINGS.items()
        ],
    }
    properties = {
        "decision": verdict.decision.value,
        "risk": verdict.risk.value,
        "reason": verdict.reason,
    }
    run = {"tool": {"driver": driver}, "results": results, "properties": properties}
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _results(effect: Effect) -> list[dict[str, Any]]:
    base = {
        "ruleId": effect.outcome.value,
        "level": _LEVELS[effect.severity.value],
        "message": {"text": f"{effect.name}: {effect.reason}"},
    }
    placed = [reference for reference in effect.references if reference.path]
    if not placed:
        logical = {"logicalLocations": [{"fullyQualifiedName": effect.consumer}]}
        return [{**base, "locations": [logical]}]
    results = []
    for reference in placed:
        physical: dict[str, Any] = {"artifactLocation": {"uri": reference.path}}
        if reference.line:
            physical["region"] = {"startLine": reference.line}
        results.append({**base, "locations": [{"physicalLocation": physical}]})
    return results
