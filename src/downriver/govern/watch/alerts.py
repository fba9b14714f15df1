"""Alerts, rendered as a line, as JSON, for Slack and as a mail."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from downriver.model.control_characters import escape_line
from downriver.model.governance import Finding, FindingKind, Incident, Severity, UpstreamFreshness

_MARKS = {Severity.INFO: "ℹ️", Severity.WARNING: "⚠️", Severity.CRITICAL: "🔥"}
_SLACK_SHOWN = 20  # a message can have at most 50 blocks
_SUBJECT = 120
_AFFECTED_SHOWN = 5
_FRESHNESS_SHOWN = 10
_SUSPECTS_SHOWN = 3
_FINDINGS_SHOWN = 10


AlertEvent: TypeAlias = Literal["opened", "changed", "resolved"]
ALERT_EVENTS: tuple[AlertEvent, ...] = ("opened", "changed", "resolved")


class AlertContext(msgspec.Struct, kw_only=True, frozen=True):
    """The most important parts of an incident report about the entity of a finding."""

    last_success: str | None
    last_written: str | None
    freshness: list[UpstreamFreshness]
    runs: list[str]  # failed and late runs upstream
    violations: list[str]  # failed checks and contracts
    changes: list[str]  # of schemas and code, since the last success
    suspects: list[str]  # the most likely cause first
    affected_count: int

    @classmethod
    def of(cls, report: Incident) -> AlertContext:
        """Return the context of a report."""
        return cls(
            last_success=report.last_success,
            last_written=report.last_written,
            freshness=report.freshness[:_FRESHNESS_SHOWN],
            runs=_describe_findings(report.runs),
            violations=_describe_findings(report.violations),
            changes=_describe_findings(report.changes),
            suspects=[
                f"{s.id}: {s.findings[0].message}" for s in report.suspects[:_SUSPECTS_SHOWN]
            ],
            affected_count=report.affected_count,
        )

    def lines(self) -> list[str]:
        """Return the context in words."""
        text_lines = [f"last success: {self.last_success}"] if self.last_success else []
        text_lines += [f"likely cause: {text}" for text in self.suspects[:1]]
        stale = [f"{each.dataset} ({each.age_hours:g} h)" for each in self.freshness
                 if each.late and each.age_hours is not None]  # fmt: skip
        return text_lines + ([f"late upstream: {', '.join(stale)}"] if stale else [])


def _describe_findings(findings: Sequence[Finding]) -> list[str]:
    return [f"{each.entity}: {each.message}" for each in findings[:_FINDINGS_SHOWN]]


class Alert(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """A finding was opened, changed or resolved."""

    event: AlertEvent
    at: str
    finding: Finding
    context: AlertContext | None = None


def sample_alert(at: str) -> Alert:
    """Return a sample alert."""
    finding = Finding(
        kind=FindingKind.ROW_COUNT_SHIFT,
        entity="dataset:example:orders",
        severity=Severity.INFO,
        message="test alert of `downriver watch try`; there is no problem",
        first_seen=at,
        opened_at=at,
        changed_at=at,
    )
    return Alert(event="opened", at=at, finding=finding)


AlertSender: TypeAlias = Callable[[Sequence[Alert]], None]


class AlertNotSentError(Exception):
    """An alert could not be sent; it is tried again later."""


def render_line(alert: Alert) -> str:
    """Return an alert in one line."""
    finding = alert.finding
    word = finding.severity.value if alert.event != "resolved" else "resolved"
    return escape_line(f"{word:<8} {finding.entity}: {_message(alert)}{_describe_scope(finding)}")


def _message(alert: Alert) -> str:
    finding = alert.finding
    if alert.event == "resolved":
        return f"{finding.message} — {finding.resolution}"
    return finding.message


def _describe_scope(finding: Finding) -> str:
    parts = [f"since {finding.first_seen}"]
    if finding.affected_count:
        parts.append(f"{finding.affected_count} downstream")
    if finding.owners:
        parts.append(f"owned by {', '.join(finding.owners)}")
    return f" ({'; '.join(parts)})"


def render_webhook(alerts: Sequence[Alert]) -> bytes:
    """Return the body for a webhook."""
    return msgspec.json.encode({"source": "downriver", "alerts": alerts})


def render_slack(alerts: Sequence[Alert]) -> bytes:
    """Return the body for Slack: a line for the notification, and one block per alert."""
    blocks = [_slack_block(alert) for alert in alerts[:_SLACK_SHOWN]]
    if len(alerts) > _SLACK_SHOWN:
        rest = f"… and {len(alerts) - _SLACK_SHOWN} more: `downriver watch findings`"
        blocks.append({"type": "section", "text": {"type": "mrkdwn", "text": rest}})
    return msgspec.json.encode({"text": _slack_text(summarise(alerts)), "blocks": blocks})


def _slack_block(alert: Alert) -> dict[str, Any]:
    finding = alert.finding
    mark = "✅" if alert.event == "resolved" else _MARKS[finding.severity]
    lines = [f"{mark} *{_slack_text(finding.entity)}*", _slack_text(_message(alert))]
    lines.append(f"_{_slack_text(_describe_scope(finding).strip(' ()'))}_")
    named = ", ".join(f"`{_slack_text(a.id)}`" for a in finding.affected[:_AFFECTED_SHOWN])
    if named and alert.event != "resolved":
        lines.append(f"downstream: {named}")
    if alert.context is not None:
        lines += map(_slack_text, alert.context.lines())
    return {"type": "section", "text": {"type": "mrkdwn", "text": "\n".join(lines)[:3000]}}


def _slack_text(text: str) -> str:
    """Return escaped text, so that a name cannot contain a mention, link or markup."""
    for plain, escaped in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        text = text.replace(plain, escaped)
    return escape_line(text)


def summarise(alerts: Sequence[Alert]) -> str:
    """Return a summary of a batch of alerts in one line."""
    counts = Counter(alert.event for alert in alerts)
    counted = ", ".join(f"{counts[event]} {event}" for event in ALERT_EVENTS if counts[event])
    first = max(alerts, key=lambda alert: (alert.event != "resolved", alert.finding.severity.rank))
    line = f"{counted}: {first.finding.entity} {first.finding.message}"
    return escape_line(" ".join(line.split()))[:_SUBJECT]


def render_mail(alerts: Sequence[Alert]) -> tuple[str, str]:
    """Return the subject and the body of a mail."""
    parts = []
    for alert in alerts:
        finding = alert.finding
        lines = [render_line(alert)]
        lines += [f"  because: {escape_line(reason)}" for reason in finding.why]
        lines += (
            [f"  {escape_line(text)}" for text in alert.context.lines()] if alert.context else []
        )
        lines += [f"  downstream: {escape_line(a.id)}" for a in finding.affected[:_AFFECTED_SHOWN]]
        lines += [f"  event: {e.event} at {e.at}" for e in finding.evidence]
        parts.append("\n".join(lines))
    return f"[downriver] {summarise(alerts)}", "\n\n".join(parts) + "\n"
