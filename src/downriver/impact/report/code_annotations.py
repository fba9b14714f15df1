"""A verdict as annotations of code lines: GitHub workflow commands and SARIF 2.1.0."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from downriver.impact.report.text import describe_effect, describe_unread, listed_effects
from downriver.model.changes import Outcome
from downriver.model.control_characters import escape_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.model.unread import Unread
    from downriver.model.verdicts import Effect, Verdict

_COMMANDS = {"breaking": "error", "warning": "warning", "none": "notice"}
_DECISIONS = {"BLOCKED": "error", "CAUTION": "warning", "APPROVED": "notice"}


def render_github(verdict: Verdict) -> str:
    """Return one annotation for the verdict and one for each place in the code."""
    head = f"{verdict.decision.value}: {verdict.reason} {verdict.recommendation}"
    lines = [_command(_DECISIONS[verdict.decision.value], {"title": "downriver"}, head)]
    for effect in listed_effects(verdict.impact):
        lines += _annotations(effect, describe_effect(verdict.impact, effect))
    lines += [_unread_command(unread) for unread in verdict.impact.unread]
    return "\n".join(lines) + "\n"


def _annotations(effect: Effect, reason: str) -> Iterator[str]:
    command = _COMMANDS[effect.severity.value]
    message = f"{effect.name}: {reason}"
    placed = [reference for reference in effect.references if reference.path]
    if not placed:
        yield _command(command, {"title": effect.name}, message)
    for reference in placed:
        where = {"file": reference.path, "title": effect.name}
        if reference.line:
            where["line"] = str(reference.line)
        yield _command(command, where, message)


def _unread_command(unread: Unread) -> str:
    command = "error" if unread.may_alter_tables else "warning"
    where = {"file": unread.path} if unread.path else {}
    if unread.line:
        where["line"] = str(unread.line)
    message = f"{describe_unread(unread)}. {unread.reason.next_step}"
    return _command(command, {**where, "title": "downriver"}, message)


def _command(name: str, properties: dict[str, str], message: str) -> str:
    rendered = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{name} {rendered}::{_data(message)}"


def _data(text: str) -> str:
    text = escape_text(text)
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


_LEVELS = {"breaking": "error", "warning": "warning", "none": "note"}
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_MEANINGS = {
    Outcome.FAILS: "A consumer fails",
    Outcome.MAY_FAIL: "A consumer may fail",
    Outcome.CHANGES: "A consumer's values or columns change",
    Outcome.NOT_REBUILT: "A consumer is not rebuilt, because another one fails",
    Outcome.DEPRECATED: "A consumer uses a deprecated dataset or column",
}


def render_sarif(verdict: Verdict, version: str) -> dict[str, Any]:
    """Return the SARIF log: one result for each place in the code of each consumer."""
    results = [result for effect in verdict.impact.effects for result in _results(effect)]
    results += [_unread_result(unread) for unread in verdict.impact.unread]
    driver = {
        "name": "downriver",
        "version": version,
        "rules": [
            {"id": outcome, "shortDescription": {"text": meaning}}
            for outcome, meaning in [
                *((outcome.value, meaning) for outcome, meaning in _MEANINGS.items()),
                ("unread", "A file of the change could not be read"),
            ]
        ],
    }
    properties = {
        "decision": verdict.decision.value,
        "risk": verdict.risk.value,
        "reason": verdict.reason,
    }
    run = {"tool": {"driver": driver}, "results": results, "properties": properties}
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _unread_result(unread: Unread) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": {"uri": unread.path}}
    if unread.line:
        physical["region"] = {"startLine": unread.line}
    return {
        "ruleId": "unread",
        "level": "error" if unread.may_alter_tables else "warning",
        "message": {"text": f"{describe_unread(unread)}. {unread.reason.next_step}"},
        "locations": [{"physicalLocation": physical}] if unread.path else [],
    }


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
