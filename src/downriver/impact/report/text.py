"""A verdict as plain text: the decision, then the affected consumers with their places."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from downriver.impact.report.verification import verification_lines
from downriver.model.changes import Outcome
from downriver.model.control_characters import escape_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from downriver.model.unread import Unread
    from downriver.model.verdicts import (
        ComparedCommits,
        Effect,
        Impact,
        LeftOut,
        Reference,
        RuleFinding,
        Verdict,
    )

_SPOTS_SHOWN = 5
_UNREAD_SHOWN = 10
_REFERENCES_SHOWN = 6
_COMMIT = 9  # characters of a commit id
_NOT_REBUILT_SHOWN = 5


def render_text(verdict: Verdict) -> str:
    """Return the verdict and a table of the affected consumers."""
    lines = [
        f"DECISION: {verdict.decision.value}",
        f"RISK: {verdict.risk.value}",
        f"AFFECTED SYSTEMS: {verdict.affected}",
        f"REASON: {verdict.reason}",
        f"RECOMMENDATION: {verdict.recommendation}",
    ]
    if verdict.impact.not_rebuilt:
        lines.insert(3, f"NOT REBUILT: {len(verdict.impact.not_rebuilt)} of them")
    if verdict.ask:
        lines.append(f"OWNERS TO ASK: {', '.join(verdict.ask)}")
    if verdict.impact.effects:
        lines += ["", *_table(verdict.impact)]
    if verdict.impact.verification is not None:
        lines += ["", *verification_lines(verdict.impact.verification)]
    lines += ["", *_completeness(verdict)]
    return "\n".join(map(escape_line, lines)) + "\n"


def describe_not_rebuilt(impact: Impact, failing: Effect) -> str:
    """Return one sentence about the consumers that are not rebuilt because one fails."""
    names = [effect.name for effect in impact.not_rebuilt_after(failing)]
    if not names:
        return ""
    more = len(names) - _NOT_REBUILT_SHOWN
    shown = names[:_NOT_REBUILT_SHOWN] + ([f"{more} more"] if more > 0 else [])
    return f"not rebuilt until this is fixed: {', '.join(shown)}"


def describe_effect(impact: Impact, effect: Effect) -> str:
    """Return the reason of an effect, and the consumers that are not rebuilt because of it."""
    return "; ".join(filter(None, (effect.reason, describe_not_rebuilt(impact, effect))))


def _table(impact: Impact) -> Iterator[str]:
    effects = listed_effects(impact)
    rows = [(e.severity.value, e.name, e.asset_type, e.reason) for e in effects]
    widths = [max(len(row[at]) for row in rows) for at in range(3)]
    for effect, row in zip(effects, rows, strict=True):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        yield f"  {'  '.join(cells)}  {row[3]}".rstrip()
        for place, clause, text in islice(list_places(effect.references), _REFERENCES_SHOWN):
            words = f"  {clause}" if clause else ""
            yield f"      {place}{words}{f': {text}' if text else ''}"
        not_rebuilt = describe_not_rebuilt(impact, effect)
        if not_rebuilt:
            yield f"      {not_rebuilt}"
        if effect.basis != "simulated":
            yield f"      based only on {effect.basis.replace('_', ' ')}"


def listed_effects(impact: Impact) -> list[Effect]:
    """Return the effects to list, without those that another listed effect causes."""
    listed = {effect.consumer for effect in impact.own_effects}
    return [
        effect
        for effect in impact.effects
        if effect.outcome is not Outcome.NOT_REBUILT or not listed.intersection(effect.because_of)
    ]


def list_places(references: Sequence[Reference]) -> Iterator[tuple[str, str, str]]:
    """Yield the place of each reference with its clause and text, which may be empty.

    References to a file without a line are one place: the text has their columns, if several.
    """
    columns: dict[str, list[str]] = {}
    for reference in references:
        if reference.path and not reference.line:
            columns.setdefault(reference.path, []).append(reference.column)
    for reference in references:
        place, text = format_location(reference), reference.text
        if reference.path and not reference.line:
            names = columns.pop(reference.path, None)
            if names is None:
                continue
            text = text or (", ".join(names) if len(names) > 1 else "")
        if place:
            yield place, "" if reference.clause == "other" else reference.clause, text


def format_location(reference: Reference) -> str:
    """Return file:line, or only the known part."""
    if not reference.path:
        return f"line {reference.line}" if reference.line else ""
    return f"{reference.path}:{reference.line}" if reference.line else reference.path


def describe_unread(unread: Unread) -> str:
    """Return the place that could not be read, why, and its text."""
    detail = f": {unread.detail}" if unread.detail else ""
    return f"{unread.location}: not read ({unread.reason.value.replace('_', ' ')}){detail}"


def _completeness(verdict: Verdict) -> Iterator[str]:
    impact = verdict.impact
    state = "complete" if impact.complete else "incomplete"
    untouched = f"{impact.untouched} other consumers not affected"
    yield f"{state} · {verdict.affected} affected, {untouched}"
    if impact.left_out is not None:
        yield describe_left_out(impact.left_out)
    if impact.commits is not None:
        yield describe_commits(impact.commits)
        if impact.commits.stored_is in ("older", "unrelated"):
            yield f"WARNING: {_OLD_STORE}"
    for unread in impact.unread[:_UNREAD_SHOWN]:
        yield f"  ! {describe_unread(unread)}"
    if len(impact.unread) > _UNREAD_SHOWN:
        yield f"  ! and {len(impact.unread) - _UNREAD_SHOWN} more that could not be read"
    for spot in impact.blind_spots[:_SPOTS_SHOWN]:
        yield f"  ? {spot.entity}: {spot.message}"
    if len(impact.blind_spots) > _SPOTS_SHOWN:
        yield f"  ? and {len(impact.blind_spots) - _SPOTS_SHOWN} more"


def describe_left_out(left_out: LeftOut) -> str:
    """Return how many affected consumers a selector leaves out."""
    word = "consumer" if left_out.consumers == 1 else "consumers"
    others = f"{left_out.consumers} affected {word} left out by --select {left_out.selector}"
    return f"{others}, {left_out.breaking} breaking or possibly breaking"


_OLD_STORE = (
    "the store is older than the base: consumers outside this repository may be missing. "
    "Run `downriver capture` on the base branch."
)


def describe_commits(commits: ComparedCommits) -> str:
    """Return the compared commits, and the commit of this repository in the store."""
    head = commits.head[:_COMMIT] or "the working tree"
    stored = commits.stored[:_COMMIT]
    missing = f"{commits.behind} commit{'s' if commits.behind != 1 else ''}"
    store = {
        "none": "the store has no commit of this repository",
        "base": f"the store has {stored}, the base",
        "head": f"the store has {stored}, the head",
        "older": f"the store has {stored}, {missing} before the base",
        "newer": f"the store has {stored}, which is after the base",
        "unrelated": f"the store has {stored}, which is not an ancestor of the base",
    }[commits.stored_is]
    return f"compared {commits.base[:_COMMIT]} with {head} · {store}"


def render_explanation(verdict: Verdict) -> str:
    """Return every rule that matched; the one that decided is marked."""
    if not verdict.findings:
        return "EXPLANATION: no rule matched\n"
    lines = ["EXPLANATION:"]
    lines += [_explained(finding, verdict.decided_by) for finding in verdict.findings]
    return "\n".join(map(escape_line, lines)) + "\n"


def _explained(finding: RuleFinding, decided_by: str) -> str:
    mark = "→" if finding.rule == decided_by and not finding.waived else " "
    waived = f" (waived by {finding.waived})" if finding.waived else ""
    return f"{mark} {finding.rule}: {finding.decision.value}: {finding.message}{waived}"
