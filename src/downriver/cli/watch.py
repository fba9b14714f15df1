"""`downriver watch`: find drift, failures and late runs, and send each alert once."""

from __future__ import annotations

import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from downriver.cli.output import (
    DisplayNames,
    FullNamesOption,
    JsonOption,
    StoreOption,
    counted,
    err,
    escape,
    out,
    print_json,
    write,
)
from downriver.errors import InvalidRequestError
from downriver.govern.drift.runs import parse_period
from downriver.govern.triggers import read_triggers
from downriver.govern.watch import (
    AlertDispatcher,
    MonitorRound,
    WatchConfig,
    read_watch,
    run_monitor,
    try_channels,
)
from downriver.govern.watch.alerts import render_line, sample_alert
from downriver.model.control_characters import escape_json
from downriver.model.governance import Finding, FindingKind, Severity
from downriver.model.trust.triggers import ActionState, TriggeredAction
from downriver.openlineage.wire import render_time
from downriver.service import Lineage
from downriver.service.govern import parse_moment, parse_since
from downriver.service.limits import DEFAULT_FINDINGS
from downriver.store.findings import ChannelBacklog

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

    from downriver.govern.triggers import ActionRunner, TriggerRule
    from downriver.govern.watch.alerts import Alert
    from downriver.govern.watch.monitor import Monitor

_ALL = 10_000
_PATIENCE = 10.0  # seconds for the running action when the monitor stops
_COLOURS = {Severity.INFO: "blue", Severity.WARNING: "yellow", Severity.CRITICAL: "bold red"}

OnceOption = Annotated[
    bool,
    typer.Option(
        "--once", help="Check once and exit. The exit code is 1 if a finding is open, else 0."
    ),
]
SinceOption = Annotated[
    str | None,
    typer.Option(
        "--since",
        metavar="TIME",
        help="Report only findings since this time, or since a period ago (24h).",
    ),
]
FailOnOption = Annotated[
    Severity,
    typer.Option(
        "--fail-on", help="With --once: exit with 1 if a finding has this severity or higher."
    ),
]
ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="Read the `watch` section of this file. Default: downriver.yml.",
    ),
]
EveryOption = Annotated[
    str | None,
    typer.Option(
        "--every",
        metavar="PERIOD",
        help="Check this often, such as 30s or 5m. Default: `every` of the settings, 30s.",
    ),
]
LakeOption = Annotated[
    str | None,
    typer.Option(
        "--lake",
        metavar="DIR",
        help="Before each check, copy new events of this lake to the store.",
    ),
]
NowOption = Annotated[
    str | None,
    typer.Option("--now", metavar="TIME", help="Check as of this time. Requires --once."),
]


class WatchReport(msgspec.Struct, kw_only=True):
    """The result of one check: changes, open findings, pending alerts and triggered actions."""

    round: MonitorRound
    open: list[Finding]
    waiting: list[ChannelBacklog]
    actions: list[TriggeredAction]


def watch(
    context: typer.Context,
    once: OnceOption = False,
    since: SinceOption = None,
    fail_on: FailOnOption = Severity.WARNING,
    config: ConfigOption = None,
    every: EveryOption = None,
    lake: LakeOption = None,
    now: NowOption = None,
    full_names: FullNamesOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Check the store repeatedly for drift, failures and late runs, and send alerts.

    An alert is sent when a finding opens, changes or is resolved."""
    if context.invoked_subcommand is not None:
        return
    settings = _settings(config, every)
    if now is not None and not once:
        raise InvalidRequestError("--now", "requires --once")
    rules = read_triggers(config)
    with Lineage.open(store, create=lake is not None) as lineage:
        dispatcher = AlertDispatcher(lineage.store, settings, _clock)
        actions = lineage.triggers.runner(rules, _clock) if rules else None
        monitor = lineage.govern.monitor(settings)
        check = _StoreCheck(lineage, monitor, rules, actions, since, lake, now)
        printer = _AlertPrinter(as_json=json, full_names=full_names)
        if once:
            sys.exit(_check_once(check, dispatcher, fail_on, printer))
        err.print(f"watching {escape(lineage.store.url)} every {settings.every}; Ctrl-C stops")
        if actions is not None:
            actions.start()
        run_monitor(check.run, printer.print, dispatcher, _stopped(), settings.period)
        if actions is not None:
            actions.stop(_PATIENCE)


def _settings(config: Path | None, every: str | None) -> WatchConfig:
    settings = read_watch(config)
    if every is None:
        return settings
    if parse_period(every) is None:
        raise InvalidRequestError("--every", f"{every!r} is not a period such as 30s or 5m")
    return msgspec.structs.replace(settings, every=every)


def _clock() -> int:
    return time.time_ns() // 1000


def _stopped() -> threading.Event:
    """Return an event that is set on SIGTERM or Ctrl-C."""
    stopped = threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:
        stopped.set()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    return stopped


class _StoreCheck:
    """One check of the store, after new events of the lake are stored."""

    def __init__(
        self,
        lineage: Lineage,
        monitor: Monitor,
        rules: Sequence[TriggerRule],
        actions: ActionRunner | None,
        since: str | None,
        lake: str | None,
        now: str | None,
    ) -> None:
        self.lineage = lineage
        self._monitor = monitor
        self._rules = rules
        self.actions = actions
        self._lake = lake
        self._now = None if now is None else parse_moment(now, "--now")
        self.since = None if since is None else parse_since(since, self.now)

    @property
    def now(self) -> int:
        """The time of the check."""
        return _clock() if self._now is None else self._now

    def run(self) -> MonitorRound:
        """Check once."""
        if self._lake is not None:
            self.lineage.govern.take_from_lake(self._lake)
        done = self._monitor.check(self.now, self.since)
        if self.actions is not None:
            self.lineage.triggers(self._rules)
            self.actions.wake()
        return done


def _check_once(
    check: _StoreCheck, dispatcher: AlertDispatcher, fail_on: Severity, printer: _AlertPrinter
) -> int:
    done = check.run()
    dispatcher.send_all()
    finished = [] if check.actions is None else check.actions.run_due()
    open_findings = check.lineage.govern.findings(limit=_ALL).findings
    if check.since is not None:
        open_findings = [
            f for f in open_findings if parse_moment(f.first_seen, "first_seen") >= check.since
        ]
    waiting = check.lineage.govern.waiting_alerts()
    if printer.as_json:
        report = WatchReport(round=done, open=open_findings, waiting=waiting, actions=finished)
        print_json(report)
    else:
        printer.print(done)
        _show_summary(done, open_findings, waiting)
        names = DisplayNames((action.target for action in finished), full=printer.full_names)
        for action in finished:
            result = f": {action.result}" if action.state is not ActionState.DONE else ""
            started = escape(f"{action.state.value} {action.trigger}")
            out.print(f"{started} → {names.label(action.target)}{escape(result)}")
    return int(any(finding.severity.rank >= fail_on.rank for finding in open_findings))


class _AlertPrinter:
    """Prints alerts: a line each, or a JSON object each."""

    def __init__(self, *, as_json: bool, full_names: bool) -> None:
        self.as_json = as_json
        self.full_names = full_names

    def print(self, done: MonitorRound) -> None:
        """Print the alerts of one check."""
        alerts = list(done.alerts())
        if self.as_json:
            for alert in alerts:
                write(escape_json(msgspec.json.encode(alert).decode()) + "\n")
        else:
            self._print_lines(alerts)
        sys.stdout.flush()

    def _print_lines(self, alerts: list[Alert]) -> None:
        findings = [alert.finding for alert in alerts]
        names = DisplayNames(
            (finding.entity for finding in findings),
            full=self.full_names,
            texts=(finding.message for finding in findings),
        )
        names.print_heading()
        for alert in alerts:
            resolved = alert.event == "resolved"
            colour = "green" if resolved else _COLOURS[alert.finding.severity]
            word, _, rest = render_line(alert).partition(" ")
            out.print(f"[{colour}]{word}[/] {names.replace_in(rest)}")


def _show_summary(
    done: MonitorRound, open_findings: list[Finding], waiting: list[ChannelBacklog]
) -> None:
    counts = [
        f"{sum(f.severity is s for f in open_findings)} {s.value}" for s in reversed(Severity)
    ]
    out.print(
        f"{len(open_findings)} open ({', '.join(counts)}); {len(done.opened)} new, "
        f"{len(done.changed)} changed, {len(done.resolved)} resolved"
    )
    for channel in waiting:
        reason = f": {channel.error}" if channel.error else ""
        err.print(
            f"{counted(channel.alerts, 'alert')} not delivered to "
            f"{escape(channel.channel)}{escape(reason)}"
        )


AllOption = Annotated[bool, typer.Option("--all", help="Include resolved findings.")]
OfOption = Annotated[
    str | None,
    typer.Option("--of", metavar="ENTITY", help="List only findings of this dataset or job."),
]
_KINDS = ", ".join(kind.value for kind in FindingKind)
KindOption = Annotated[
    FindingKind | None,
    typer.Option("--kind", metavar="KIND", help=f"List only findings of this kind: {_KINDS}."),
]
SeverityOption = Annotated[
    Severity | None,
    typer.Option("--severity", help="List only findings of this severity or higher."),
]
LimitOption = Annotated[
    int, typer.Option("--limit", metavar="N", min=1, help="List at most N findings.")
]


def findings(
    of: OfOption = None,
    kind: KindOption = None,
    severity: SeverityOption = None,
    since: SinceOption = None,
    every_one: AllOption = False,
    limit: LimitOption = DEFAULT_FINDINGS,
    full_names: FullNamesOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """List the open findings, the last changed first."""
    with Lineage.open(store, create=False) as lineage:
        answer = lineage.govern.findings(
            status=None if every_one else "open",
            entity=of,
            kind=None if kind is None else kind.value,
            severity=None if severity is None else severity.value,
            since=since,
            limit=limit,
        )
    if json:
        print_json(answer)
        return
    texts = [text for each in answer.findings for text in (each.message, *each.why)]
    names = DisplayNames((each.entity for each in answer.findings), full=full_names, texts=texts)
    names.print_heading()
    for finding in answer.findings:
        _show_finding(finding, names)
    more = "" if answer.complete else f", of {answer.total}"
    word = "finding" if len(answer.findings) == 1 else "findings"
    out.print(f"{len(answer.findings)} {word}{more}")


def _show_finding(finding: Finding, names: DisplayNames) -> None:
    resolved = finding.status == "resolved"
    colour = "green" if resolved else _COLOURS[finding.severity]
    word = "resolved" if resolved else finding.severity.value
    out.print(
        f"[{colour}]{word:<8}[/] {names.label(finding.entity)}: {names.replace_in(finding.message)}"
    )
    details = [f"since {finding.first_seen}", *finding.why]
    if finding.affected_count:
        details.append(f"{finding.affected_count} downstream")
    if finding.owners:
        details.append(f"owned by {', '.join(finding.owners)}")
    if finding.resolution:
        details.append(f"resolved {finding.resolved_at}: {finding.resolution}")
    for detail in details:
        out.print(f"           {names.replace_in(detail)}")


class ChannelTest(msgspec.Struct, kw_only=True):
    """Whether a channel accepted an alert. `error` is the reason if it did not."""

    channel: str
    error: str | None


def send_sample_alerts(config: ConfigOption = None, json: JsonOption = False) -> None:
    """Send a sample alert to every channel, and show which channels failed.

    The exit code is 1 if a channel failed.
    """
    tried = try_channels(read_watch(config), sample_alert(render_time(_clock())))
    tests = [ChannelTest(channel=name, error=error) for name, error in tried.items()]
    if json:
        print_json(tests)
    else:
        for channel in tests:
            word = "[green]sent[/]" if channel.error is None else "[bold red]failed[/]"
            reason = "" if channel.error is None else f": {channel.error}"
            out.print(f"{word} {escape(channel.channel + reason)}")
        if not tests:
            out.print("no channels: add them to the `watch` section of downriver.yml")
    sys.exit(int(any(channel.error for channel in tests)))
