"""A verdict as a comment on a pull request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.export.pictures.mermaid import escape_text
from downriver.impact.report.text import (
    describe_effect,
    describe_left_out,
    format_location,
    listed_effects,
)
from downriver.impact.report.verification import (
    CONTRADICTIONS,
    describe_column,
    describe_observation,
    describe_prediction,
    unverified_lines,
)
from downriver.model.control_characters import escape_line
from downriver.model.control_characters import escape_text as escape_controls

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.model.trust.verification import DatabaseVerification
    from downriver.model.unread import Unread
    from downriver.model.verdicts import Effect, Impact, Reference, Verdict

_MARKS = {"APPROVED": "✅", "CAUTION": "⚠️", "BLOCKED": "⛔"}
_SEVERITIES = {"breaking": "🔴 breaking", "warning": "🟡 warning", "none": "none"}
COMMENT_MARK = "<!-- downriver-gate -->"  # a later run finds its comment by this text
_MOST_NODES = 20
_PLACES_SHOWN = 3


def render_markdown(verdict: Verdict, patch: str = "") -> str:
    """Return the verdict with a small graph, a table by severity, and the patch folded away."""
    impact = verdict.impact
    parts = [
        f"## {_MARKS[verdict.decision.value]} {verdict.decision.value} · {verdict.risk.value} risk",
        f"**{_escape('; '.join(impact.changes))}** — {_escape(verdict.reason)}",
        f"**Next:** {_escape(verdict.recommendation)}",
    ]
    if verdict.ask:
        parts.append(f"**Ask:** {', '.join(map(_escape, verdict.ask))}")
    if impact.effects:
        parts += [_graph(verdict), _table(impact)]
    if impact.verification is not None:
        parts.append(_verification(impact.verification))
    if impact.unread:
        parts.append("\n".join(["**Not read:**", "", *map(_unread, impact.unread)]))
    parts.append(_completeness(verdict))
    if patch:
        parts.append(f"<details><summary>Suggested patch</summary>\n\n{_fenced(patch)}\n</details>")
    return "\n\n".join([*parts, COMMENT_MARK]) + "\n"


def _verification(verification: DatabaseVerification) -> str:
    """Return the models that were built, as a table, and what was not verified."""
    verified = [model for model in verification.models if model.unverified is None]
    count = f"{len(verified)} of {len(verification.models)} models"
    lines = [f"**Verified:** {count}, in {_escape(verification.database)}", ""]
    if verified:
        lines += ["| model | predicted | observed |", "|---|---|---|"]
    for model in verified:
        observed = [describe_observation(model), *map(describe_column, model.columns)]
        observation = "<br>".join(map(_escape, observed))
        observation += "".join(
            f"<br>❗ **{CONTRADICTIONS[kind]}**" for kind in model.contradictions
        )
        cells = (_escape(model.model), _escape(describe_prediction(model)), observation)
        lines.append(f"| {' | '.join(cells)} |")
    unverified = [f"- {_escape(line)}" for line in unverified_lines(verification)]
    if unverified:
        lines += ["", "**Not verified:**", "", *unverified]
    return "\n".join(lines)


def _escape(text: str) -> str:
    for character in "\\|<>*_`":
        text = text.replace(character, f"\\{character}")
    return escape_line(text.replace("\n", " "))


def _fenced(patch: str) -> str:
    fence = "```"
    while fence in patch:
        fence += "`"
    return f"{fence}diff\n{escape_controls(patch.rstrip())}\n{fence}\n"


def _graph(verdict: Verdict) -> str:
    """Draw the affected consumers downstream of what changes, nearest first."""
    impact = verdict.impact
    shown = sorted(impact.effects, key=lambda effect: effect.hops)[:_MOST_NODES]
    ids: dict[str, str] = {}
    lines = ["```mermaid", "flowchart LR"]
    for target in impact.targets:
        ids[target] = f"n{len(ids)}"
        lines.append(f'  {ids[target]}["{escape_text(impact.name_of(target))}"]:::changed')
    for effect in shown:
        ids[effect.consumer] = f"n{len(ids)}"
        lines.append(
            f'  {ids[effect.consumer]}["{escape_text(effect.name)}"]:::{effect.severity.value}'
        )
    lines += dict.fromkeys(_edges(shown, impact.targets, ids))
    lines += [
        "  classDef changed stroke-width:3px",
        "  classDef breaking fill:#f8d7da,stroke:#b02a37,color:#000",
        "  classDef warning fill:#fff3cd,stroke:#997404,color:#000",
        "```",
    ]
    return "\n".join(lines)


def _edges(shown: list[Effect], targets: list[str], ids: dict[str, str]) -> Iterator[str]:
    written = {dataset: effect.consumer for effect in shown for dataset in effect.writes}
    for effect in shown:
        givers = [written.get(source, source) for source in effect.reads]
        known = [giver for giver in givers if giver in ids and giver != effect.consumer]
        for giver in known or targets[:1]:
            yield f"  {ids[giver]} --> {ids[effect.consumer]}"


def _table(impact: Impact) -> str:
    lines = ["| severity | consumer | where | why | owners |", "|---|---|---|---|---|"]
    for effect in listed_effects(impact):
        certified = " 🏅" if effect.certified else ""
        cells = (
            _SEVERITIES[effect.severity.value],
            f"{_escape(effect.name)}{certified} ({_escape(effect.asset_type)})",
            _places(effect.references),
            _escape(describe_effect(impact, effect)) + _basis(effect),
            _escape(", ".join(effect.owners)),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _basis(effect: Effect) -> str:
    return "" if effect.basis == "simulated" else f" _(by {effect.basis.replace('_', ' ')})_"


def _places(references: list[Reference]) -> str:
    links = []
    for reference in references:
        place = format_location(reference)
        if not place:
            continue
        target = reference.path.replace(" ", "%20") + (
            f"#L{reference.line}" if reference.line else ""
        )
        links.append(f"[{_escape(place)}]({target})" if reference.path else _escape(place))
    links_shown = list(dict.fromkeys(links))
    more = f" +{len(links_shown) - _PLACES_SHOWN}" if len(links_shown) > _PLACES_SHOWN else ""
    return ", ".join(links_shown[:_PLACES_SHOWN]) + more


def _unread(unread: Unread) -> str:
    line = f"#L{unread.line}" if unread.line else ""
    place = f"[{_escape(unread.location)}]({unread.path.replace(' ', '%20')}{line})"
    reason = unread.reason.value.replace("_", " ")
    detail = f": `{unread.detail.replace('`', ' ')}`" if unread.detail else ""
    return f"- {place if unread.path else _escape(unread.location)} ({reason}){detail}"


def _completeness(verdict: Verdict) -> str:
    impact = verdict.impact
    not_rebuilt = f" ({len(impact.not_rebuilt)} not rebuilt)" if impact.not_rebuilt else ""
    affected = f"{verdict.affected} affected{not_rebuilt}"
    counts = f"{affected} · {impact.untouched} other consumers not affected"
    if impact.left_out is not None:
        counts += f" · {_escape(describe_left_out(impact.left_out))}"
    if impact.complete:
        return f"<sub>{counts} · the answer is complete</sub>"
    spots = "; ".join(f"{spot.entity}: {spot.message}" for spot in impact.blind_spots[:5])
    shown = f": {_escape(spots)}" if spots else ""
    return f"<sub>{counts} · **incomplete**{shown}</sub>"
