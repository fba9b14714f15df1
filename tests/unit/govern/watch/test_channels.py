"""Each alert is sent once to each channel, and no channel delays another one."""

from __future__ import annotations

import json
import logging
import time
from typing import TYPE_CHECKING

import pytest
from tests.openlineage import encode
from tests.server import free_port
from tests.smtp import running_postbox
from tests.unit.govern.scenario import micros
from tests.unit.govern.watch.test_monitor import DAYS, weeks
from tests.webhook import running_hook

from downriver.errors import InvalidRequestError
from downriver.govern.watch import AlertDispatcher, parse_watch
from downriver.model.governance import Severity
from downriver.service import Lineage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOW = micros(DAYS - 0.8)
HOUR = 3_600_000_000


@pytest.fixture
def lineage(tmp_path: Path) -> Iterator[Lineage]:
    with Lineage.open(str(tmp_path / "store")) as lineage:
        lineage.ingest([encode(event) for event in weeks()])
        yield lineage


def tell(lineage: Lineage, section: dict, now: int = NOW) -> AlertDispatcher:
    watch = parse_watch(section)
    lineage.govern.monitor(watch).check(now)
    dispatcher = AlertDispatcher(lineage.store, watch, lambda: now)
    dispatcher.send_all()
    return dispatcher


def waiting(lineage: Lineage) -> dict[str, int]:
    return {channel.channel: channel.alerts for channel in lineage.govern.waiting_alerts()}


def test_a_file_gets_a_line_of_json_for_each_alert(lineage: Lineage, tmp_path: Path) -> None:
    path = tmp_path / "alerts.jsonl"
    tell(lineage, {"channels": [{"type": "file", "path": str(path)}]})
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert {line["event"] for line in lines} == {"opened"}
    assert {line["finding"]["kind"] for line in lines} == {
        "column_retyped", "row_count_shift", "run_failed",
    }  # fmt: skip
    assert waiting(lineage) == {}


def test_a_webhook_gets_json_and_slack_gets_its_own(
    lineage: Lineage, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_hook() as hook:
        monkeypatch.setenv("HOOK", f"{hook.url}/drift?key=s3cret")
        monkeypatch.setenv("SLACK", f"{hook.url}/services/T0/B0")
        channels = [{"type": "webhook", "url": "${HOOK}"}, {"type": "slack", "url": "${SLACK}"}]
        tell(lineage, {"channels": channels})
        posts = dict(hook.posts)
    plain = posts["/drift?key=s3cret"]
    assert plain["source"] == "downriver"
    assert len(plain["alerts"]) == 3
    slack = posts["/services/T0/B0"]
    assert slack["text"].startswith("3 opened: ")
    assert all(block["text"]["type"] == "mrkdwn" for block in slack["blocks"])
    assert any("`dataset:postgres" in block["text"]["text"] for block in slack["blocks"])


def test_a_mail_is_sent_by_smtp_with_a_login(
    lineage: Lineage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAIL_PASSWORD", "s3cret")
    with running_postbox() as postbox:
        mail = {
            "type": "email", "host": "127.0.0.1", "port": postbox.port, "tls": "none",
            "from": "downriver@acme.example", "to": ["ann@acme.example", "bob@acme.example"],
            "username": "downriver", "password": "${MAIL_PASSWORD}",
        }  # fmt: skip
        tell(lineage, {"channels": [mail]})
        (sent,) = postbox.mails
    assert sent.to == ["ann@acme.example", "bob@acme.example"]
    assert sent.login == "downriver s3cret"
    assert "Subject: [downriver] 3 opened:" in sent.text
    assert "10 rows were written" in sent.text.replace("=\n", "")


def test_a_failing_channel_keeps_its_alerts_and_does_not_delay_others(
    lineage: Lineage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog
) -> None:
    port = free_port()
    monkeypatch.setenv("HOOK", f"http://127.0.0.1:{port}/services/s3cret")
    path = tmp_path / "alerts.jsonl"
    channels = [
        {"type": "webhook", "name": "pager", "url": "${HOOK}"},
        {"type": "file", "path": str(path)},
    ]
    caplog.set_level(logging.DEBUG)
    tell(lineage, {"channels": channels})
    assert waiting(lineage) == {"pager": 3}
    assert len(path.read_text().splitlines()) == 3
    assert "pager" in caplog.text
    assert "s3cret" not in caplog.text + repr(lineage.govern.waiting_alerts())
    with running_hook(port) as hook:
        watch = parse_watch({"channels": channels})
        AlertDispatcher(lineage.store, watch, lambda: NOW + 1_000_000).send_all()
        assert hook.posts == []  # a moment later: not yet
        AlertDispatcher(lineage.store, watch, lambda: NOW + HOUR).send_all()
        assert [len(body["alerts"]) for _, body in hook.posts] == [3]
        AlertDispatcher(lineage.store, watch, lambda: NOW + 2 * HOUR).send_all()
        assert len(hook.posts) == 1
    assert waiting(lineage) == {}
    assert len(path.read_text().splitlines()) == 3


def test_a_server_that_refuses_or_hangs_is_tried_again(
    lineage: Lineage, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_hook() as hook:
        monkeypatch.setenv("HOOK", hook.url)
        section = {"channels": [{"type": "webhook", "url": "${HOOK}", "timeout_seconds": 0.3}]}
        hook.status = 503
        tell(lineage, section)
        assert lineage.govern.waiting_alerts()[0].error == "answered 503"
        hook.status = 302
        AlertDispatcher(lineage.store, parse_watch(section), lambda: NOW + HOUR).send_all()
        assert lineage.govern.waiting_alerts()[0].error == "answered 302"
        hook.status, hook.delay = 200, 1.0
        started = time.monotonic()
        AlertDispatcher(lineage.store, parse_watch(section), lambda: NOW + 2 * HOUR).send_all()
        assert time.monotonic() - started < 0.9
        assert lineage.govern.waiting_alerts()[0].attempts == 3


def test_alerts_of_a_process_that_died_while_sending_are_sent_by_another(
    lineage: Lineage, tmp_path: Path
) -> None:
    path = tmp_path / "alerts.jsonl"
    watch = parse_watch({"channels": [{"type": "file", "path": str(path)}]})
    lineage.govern.monitor(watch).check(NOW)
    with lineage.store.ledger() as ledger:  # claimed, and not finished
        assert len(ledger.claim("file-1", NOW, NOW + HOUR, 100)) == 3
    AlertDispatcher(lineage.store, watch, lambda: NOW).send_all()
    assert not path.exists()
    AlertDispatcher(lineage.store, watch, lambda: NOW + HOUR).send_all()
    assert len(path.read_text().splitlines()) == 3


def test_in_quiet_hours_alerts_wait_and_none_is_lost(lineage: Lineage, tmp_path: Path) -> None:
    path = tmp_path / "alerts.jsonl"
    section = {
        "quiet_hours": {"from": "22:00", "to": "09:00", "unless": "critical"},
        "channels": [{"type": "file", "path": str(path)}],
    }
    tell(lineage, section)  # it is shortly before seven
    told = [json.loads(line)["finding"]["severity"] for line in path.read_text().splitlines()]
    assert told == ["critical", "critical"]
    assert waiting(lineage) == {"file-1": 1}
    watch = parse_watch(section)
    AlertDispatcher(lineage.store, watch, lambda: NOW + HOUR).send_all()
    assert waiting(lineage) == {"file-1": 1}
    AlertDispatcher(lineage.store, watch, lambda: NOW + 3 * HOUR).send_all()
    assert waiting(lineage) == {}
    assert len(path.read_text().splitlines()) == 3


def test_quiet_hours_support_time_zones_midnight_and_whole_days() -> None:
    quiet = parse_watch(
        {"quiet_hours": {"from": "22:00", "to": "06:00", "timezone": "Europe/Berlin",
                         "whole_days": ["sat", "sun"]}}
    ).quiet_hours  # fmt: skip
    assert quiet is not None
    monday_noon, friday_night = micros(0, 10), micros(4, 20)
    assert quiet.over_at(monday_noon, Severity.INFO) == monday_noon
    # Friday 23:00 in Berlin: over on Monday at six there, which is five in UTC.
    assert quiet.over_at(friday_night, Severity.CRITICAL) == micros(7, 3)


def test_a_channel_receives_only_alerts_that_match_its_filter(
    lineage: Lineage, tmp_path: Path
) -> None:
    channels = [
        {"type": "file", "path": str(tmp_path / "bad"), "min_severity": "critical"},
        {"type": "file", "path": str(tmp_path / "anns"), "owners": ["ann"]},
        {"type": "file", "path": str(tmp_path / "jobs"), "entities": ["job:*"]},
    ]
    tell(lineage, {"channels": channels})
    counts = [len((tmp_path / n).read_text().splitlines()) for n in ("bad", "anns", "jobs")]
    assert counts == [2, 2, 1]


def test_alerts_are_sent_in_the_background_until_stopped(lineage: Lineage, tmp_path: Path) -> None:
    path = tmp_path / "alerts.jsonl"
    watch = parse_watch({"channels": [{"type": "file", "path": str(path)}]})
    dispatcher = AlertDispatcher(lineage.store, watch, lambda: NOW)
    dispatcher.start()
    lineage.govern.monitor(watch).check(NOW)
    dispatcher.wake()
    deadline = time.monotonic() + 10
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    dispatcher.stop(5)
    assert len(path.read_text().splitlines()) == 3


@pytest.mark.parametrize(
    ("section", "field"),
    [
        ({"evry": "30s"}, "evry"),
        ({"every": "soon"}, "watch.every"),
        ({"rows": {"threshold": "high"}}, r"\$.rows.threshold"),
        ({"rows": {"threshold": -1}}, r"\$.rows.threshold"),
        ({"lateness": {"min_runs": 1}}, r"\$.lateness.min_runs"),
        ({"schedules": {"x": "0 99 * * *"}}, "watch.schedules.x"),
        ({"timezone": "Mars/Olympus"}, "watch.timezone"),
        ({"quiet_hours": {"from": "25:00", "to": "06:00"}}, "watch.quiet_hours.from"),
        ({"quiet_hours": {"from": "22:00"}}, "to"),
        ({"channels": [{"type": "pigeon"}]}, r"\$.channels\[0\].type"),
        ({"channels": [{"type": "webhook", "url": "https://x"}]}, r"watch.channels\[0\].url"),
        ({"channels": [{"type": "email", "host": "h", "from": "a@b", "to": ["c@d"],
                        "password": "hunter2"}]}, r"watch.channels\[0\].password"),
        ({"channels": [{"type": "email", "host": "h", "from": "a@b", "to": []}]},
         r"\$.channels\[0\].to"),
        ({"severities": {"columns": "info"}}, "severities"),
        ({"ignore": [{"kinds": ["everything"]}]}, r"\$.ignore\[0\].kinds"),
        ([], "watch"),
    ],
)  # fmt: skip
def test_a_mistake_in_the_file_is_named(section: object, field: str) -> None:
    with pytest.raises(InvalidRequestError, match=field) as error:
        parse_watch(section)
    assert "hunter2" not in str(error.value)


def test_a_secret_that_is_not_set_is_named_before_anything_is_watched(lineage: Lineage) -> None:
    watch = parse_watch({"channels": [{"type": "slack", "url": "${NOT_SET_ANYWHERE}"}]})
    with pytest.raises(InvalidRequestError, match=r"watch.channels\[0\].url.*NOT_SET_ANYWHERE"):
        AlertDispatcher(lineage.store, watch, lambda: NOW)
