"""`downriver watch`: what drifts, fails or is late, told once to those it concerns."""

from __future__ import annotations

import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.markup import escape

from downriver.cli.output import JsonOption, StoreOption, err, out, print_json
from downriver.errors import InvalidRequestError
from downriver.govern.drift.schedule import parse_period
from downriver.govern.watch import (
    AlertDispatcher,
    MonitorRound,
    WatchConfig,
    read_watch,
    run_monitor,
    try_channels,
)
from downriver.govern.watch.alerts import render_line, sample_alert
from downriver.model.findings import Finding, FindingKind, Severity
from downriver.openlineage.wire import render_time
from downriver.service import Lineage
from downriver.service.govern import DEFAULT_FINDINGS, parse_moment, parse_since
from downriver.store.findings import ChannelBacklog

if TYPE_CHECKING:
    from types import FrameType

    from downriver.govern.watch.monitor import Monitor

app = typer.Typer(help="Watch for drift, failures and late runs.", invoke_without_command=True)

_ALL = 10_000
_COLOURS = {Severity.INFO: "blue", Severity.WARNING: "yellow", Severity.CRITICAL: "bold red"}

OnceOption = Annotated[
    bool, typer.Option("--once", help="Look once and leave: 1 when something is open, else 0.")
]
SinceOption = Annotated[
    str | None,
    typer.Option("--since", metavar="TIME", help="Only what began since: a time, or 24h ago."),
]
FailOnOption = Annotated[
    Severity, typer.Option("--fail-on", help="How bad an open finding makes --once leave with 1.")
]
ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="The file with a section `watch`."),
]
EveryOption = Annotated[
    str | None, typer.Option("--every", metavar="PERIOD", help="How often to look: 30s, 5m.")
]
LakeOption = Annotated[
    str | None, typer.Option("--lake", metavar="DIR", help="Follow the events of this lake too.")
]
NowOption = Annotated[
    str | None,
    typer.Option("--now", metavar="TIME", help="Look as if it were this time; with --once."),
]


class WatchReport(msgspec.Struct, kw_only=True):
    """What one look came to: the news, all that is open, and what could not be told yet."""

    round: MonitorRound
    open: list[Finding]
    waiting: list[ChannelBacklog]


@app.callback()
def watch(
    context: typer.Context,
    once: OnceOption = False,
    since: SinceOption = None,
    fail_on: FailOnOption = Severity.WARNING,
    config: ConfigOption = None,
    every: EveryOption = None,
    lake: LakeOption = None,
    now: NowOption = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Watch the store: a finding is told when it opens, changes and is resolved, and not again."""
    if context.invoked_subcommand is not None:
        return
    settings = _settings(config, every)
    if now is not None and not once:
        raise InvalidRequestError("--now", "goes with --once")
    with Lineage.open(store, create=lake is not None) as lineage:
        couriers = AlertDispatcher(lineage.store, settings, _clock)
        looking = _Looking(lineage, lineage.monitor(settings), since, lake, now)
        if once:
            sys.exit(_look_once(looking, couriers, fail_on, as_json=json))
        err.print(f"watching {escape(lineage.store.url)} every {settings.every}; Ctrl-C stops")
        run_monitor(looking.look, _Telling(json).tell, couriers, _stopped(), settings.period)


def _settings(config: Path | None, every: str | None) -> WatchConfig:
    settings = read_watch(config)
    if every is None:
        return settings
    if parse_period(every) is None:
        raise InvalidRequestError("--every", f"{every!r} is no period such as 30s or 5m")
    return msgspec.structs.replace(settings, every=every)


def _clock() -> int:
    return time.time_ns() // 1000


def _stopped() -> threading.Event:
    """Return what is set when the process is asked to end."""
    stopped = threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:
        stopped.set()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    return stopped


class _Looking:
    """A look at the store, after what the lake has new was taken in."""

    def __init__(
        self,
        lineage: Lineage,
        monitor: Monitor,
        since: str | None,
        lake: str | None,
        now: str | None,
    ) -> None:
        self.lineage = lineage
        self._monitor = monitor
        self._lake = lake
        self._now = None if now is None else parse_moment(now, "--now")
        self.since = None if since is None else parse_since(since, self.now)

    @property
    def now(self) -> int:
        """The moment to judge from."""
        return _clock() if self._now is None else self._now

    def look(self) -> MonitorRound:
        """Look once."""
        if self._lake is not None:
            self.lineage.take_from_lake(self._lake)
        return self._monitor.look(self.now, self.since)


def _look_once(
    looking: _Looking, couriers: AlertDispatcher, fail_on: Severity, *, as_json: bool
) -> int:
    done = looking.look()
    couriers.tell_all()
    still = looking.lineage.findings(limit=_ALL).findings
    if looking.since is not None:
        still = [f for f in still if parse_moment(f.first_seen, "first_seen") >= looking.since]
    waiting = looking.lineage.waiting_alerts()
    if as_json:
        print_json(WatchReport(round=done, open=still, waiting=waiting))
    else:
        _Telling(False).tell(done)
        _show_summary(done, still, waiting)
    return int(any(finding.severity.rank >= fail_on.rank for finding in still))


class _Telling:
    """News on the terminal: a line each, or a JSON object each."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json

    def tell(self, done: MonitorRound) -> None:
        """Print the news of one look."""
        for alert in done.alerts():
            if self._as_json:
                sys.stdout.write(msgspec.json.encode(alert).decode() + "\n")
            else:
                resolved = alert.event == "resolved"
                colour = "green" if resolved else _COLOURS[alert.finding.severity]
                word, _, rest = render_line(alert).partition(" ")
                out.print(f"[{colour}]{word}[/] {escape(rest)}")
        sys.stdout.flush()


def _show_summary(done: MonitorRound, still: list[Finding], waiting: list[ChannelBacklog]) -> None:
    counts = [f"{sum(f.severity is s for f in still)} {s.value}" for s in reversed(Severity)]
    out.print(
        f"{len(still)} open ({', '.join(counts)}); {len(done.opened)} new, "
        f"{len(done.changed)} changed, {len(done.resolved)} resolved"
    )
    for channel in waiting:
        reason = f": {channel.error}" if channel.error else ""
        err.print(f"{channel.alerts} alerts wait for {escape(channel.channel)}{escape(reason)}")


AllOption = Annotated[bool, typer.Option("--all", help="Resolved ones too.")]
OfOption = Annotated[
    str | None, typer.Option("--of", metavar="ENTITY", help="Only of this dataset or job.")
]
KindOption = Annotated[FindingKind | None, typer.Option("--kind", help="Only of this kind.")]
SeverityOption = Annotated[
    Severity | None, typer.Option("--severity", help="Only this severity or worse.")
]
LimitOption = Annotated[int, typer.Option("--limit", min=1, help="How many at most.")]


@app.command("findings")
def findings(
    of: OfOption = None,
    kind: KindOption = None,
    severity: SeverityOption = None,
    since: SinceOption = None,
    every_one: AllOption = False,
    limit: LimitOption = DEFAULT_FINDINGS,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """List what the monitor has found: open findings, the latest news first."""
    with Lineage.open(store, create=False) as lineage:
        found = lineage.findings(
            status=None if every_one else "open",
            entity=of,
            kind=None if kind is None else kind.value,
            severity=None if severity is None else severity.value,
            since=since,
            limit=limit,
        )
    if json:
        print_json(found)
        return
    for finding in found.findings:
        _show_finding(finding)
    more = "" if found.complete else f", of {found.total}"
    word = "finding" if len(found.findings) == 1 else "findings"
    out.print(f"{len(found.findings)} {word}{more}")


def _show_finding(finding: Finding) -> None:
    resolved = finding.status == "resolved"
    colour = "green" if resolved else _COLOURS[finding.severity]
    word = "resolved" if resolved else finding.severity.value
    out.print(f"[{colour}]{word:<8}[/] {escape(finding.entity)}: {escape(finding.message)}")
    details = [f"since {finding.first_seen}", *finding.why]
    if finding.affected_count:
        details.append(f"{finding.affected_count} downstream")
    if finding.owners:
        details.append(f"owned by {', '.join(finding.owners)}")
    if finding.resolution:
        details.append(f"resolved {finding.resolved_at}: {finding.resolution}")
    for detail in details:
        out.print(f"           {escape(detail)}")


class ChannelTest(msgspec.Struct, kw_only=True):
    """How a channel took an alert; `error` is why it did not."""

    channel: str
    error: str | None


@app.command("try")
def send_sample_alerts(config: ConfigOption = None, json: JsonOption = False) -> None:
    """Send a sample alert to every channel, and say which could not be told, and why."""
    tried = try_channels(read_watch(config), sample_alert(render_time(_clock())))
    found = [ChannelTest(channel=name, error=error) for name, error in tried.items()]
    if json:
        print_json(found)
    else:
        for channel in found:
            word = "[green]told[/]" if channel.error is None else "[bold red]not told[/]"
            reason = "" if channel.error is None else f": {channel.error}"
            out.print(f"{word} {escape(channel.channel + reason)}")
        if not found:
            out.print("no channels: put some under `watch` in downriver.yml")
    sys.exit(int(any(channel.error for channel in found)))
