"""A verdict as GitHub workflow commands, which annotate the lines of a pull request."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.model.verdicts import Effect, Verdict

_COMMANDS = {"breaking": "error", "warning": "warning", "none": "notice"}
_DECISIONS = {"BLOCKED": "error", "CAUTION": "warning", "APPROVED": "notice"}


def render_github(verdict: Verdict) -> str:
    """Return one annotation for the verdict and one for each place in the code."""
    head = f"{verdict.decision.value}: {verdict.reason} {verdict.recommendation}"
    lines = [_command(_DECISIONS[verdict.decision.value], {"title": "downriver"}, head)]
    for effect in verdict.impact.effects:
        lines += _annotations(effect)
    return "\n".join(lines) + "\n"


def _annotations(effect: Effect) -> Iterator[str]:
    command = _COMMANDS[effect.severity.value]
    message = f"{effect.name}: {effect.reason}"
    placed = [reference for reference in effect.references if reference.path]
    if not placed:
        yield _command(command, {"title": effect.name}, message)
    for reference in placed:
        where = {"file": reference.path, "title": effect.name}
        if reference.line:
            where["line"] = str(reference.line)
        yield _command(command, where, message)


def _command(name: str, properties: dict[str, str], message: str) -> str:
    told = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{name} {told}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
