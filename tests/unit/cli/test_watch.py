"""`downriver watch`, `kpis`, `incident`, `tags` and `certified` on the command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest
from tests.openlineage import dataset_event, encode
from tests.unit.cli.command import downriver
from tests.unit.govern.scenario import moment, output, rows, run, schema, tagged
from tests.unit.govern.watch.test_monitor import DAYS, weeks
from tests.webhook import running_hook

from downriver.service import Lineage

if TYPE_CHECKING:
    from pathlib import Path

AT = moment(DAYS - 0.8)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with Lineage.open(str(tmp_path / ".downriver")) as lineage:
        lineage.ingest([encode(event) for event in weeks()])
    return tmp_path


def test_once_prints_changes_and_exits_with_1_while_a_finding_is_open(folder: Path) -> None:
    done = downriver("watch", "--once", "--now", AT, cwd=folder)
    assert done.returncode == 1, done.stderr
    assert "critical sum: failed: boom" in done.stdout
    assert "3 open (2 critical, 1 warning, 0 info); 3 new, 0 changed, 0 resolved" in done.stdout
    again = downriver("watch", "--once", "--now", AT, cwd=folder)
    assert again.returncode == 1
    assert again.stdout == "3 open (2 critical, 1 warning, 0 info); 0 new, 0 changed, 0 resolved\n"


def test_the_exit_code_depends_on_fail_on(folder: Path) -> None:
    healthy = moment(DAYS - 1.5)
    assert downriver("watch", "--once", "--now", healthy, cwd=folder).returncode == 0
    late = ("watch", "--once", "--now", AT, "--since", moment(DAYS - 0.95))
    found = downriver(*late, "--json", cwd=folder)
    assert found.returncode == 1
    assert [f["kind"] for f in json.loads(found.stdout)["open"]] == ["run_failed"]
    none = downriver("watch", "--once", "--now", AT, "--since", moment(DAYS), cwd=folder)
    assert none.returncode == 0


def test_json_has_changes_open_findings_and_undelivered_alerts(folder: Path) -> None:
    config = "watch:\n  channels:\n    - {type: webhook, name: pager, url: '${HOOK}'}\n"
    (folder / "downriver.yml").write_text(config)
    done = downriver(
        "watch", "--once", "--now", AT, "--json", cwd=folder, HOOK="http://127.0.0.1:9/x"
    )
    found = json.loads(done.stdout)
    assert len(found["round"]["opened"]) == len(found["open"]) == 3
    assert found["waiting"][0]["channel"] == "pager"
    assert found["waiting"][0]["alerts"] == 3


def test_findings_are_listed_and_filtered(folder: Path) -> None:
    downriver("watch", "--once", "--now", AT, cwd=folder)
    listed = downriver("watch", "findings", cwd=folder)
    assert "10 rows were written" in listed.stdout
    assert listed.stdout.endswith("3 findings\n")
    of = downriver(
        "watch", "findings", "--of", "raw", "--kind", "column_retyped", "--json", cwd=folder
    )
    (found,) = json.loads(of.stdout)["findings"]
    assert found["expected"] == "int"
    assert (
        "2 findings" in downriver("watch", "findings", "--severity", "critical", cwd=folder).stdout
    )
    unknown = downriver("watch", "findings", "--of", "nowhere", cwd=folder)
    assert unknown.returncode == 2


def test_invalid_options_are_errors_and_nothing_is_watched(folder: Path) -> None:
    (folder / "downriver.yml").write_text("watch: {every: soon}\n")
    done = downriver("watch", "--once", cwd=folder)
    assert done.returncode == 2
    assert "downriver.yml: watch.every: 'soon' is not a period" in done.stderr
    (folder / "downriver.yml").unlink()
    assert "requires --once" in downriver("watch", "--now", AT, cwd=folder).stderr
    assert "--every" in downriver("watch", "--once", "--every", "x", cwd=folder).stderr
    assert (
        "no such file"
        in downriver("watch", "--once", "--config", "none.yml", cwd=folder).stderr.lower()
    )


def test_one_file_configures_the_gate_and_the_watch(folder: Path) -> None:
    (folder / "downriver.yml").write_text("gate: {max_affected: 3}\nwatch: {settle_days: 3}\n")
    assert downriver("watch", "--once", "--now", AT, cwd=folder).returncode == 1
    gate = downriver("gate", "--sql", "alter table mart add column x int", cwd=folder)
    assert "downriver.yml" not in gate.stderr


def test_watch_runs_until_it_is_stopped(folder: Path) -> None:
    command = [sys.executable, "-m", "downriver", "watch", "--every", "0.2s", "--json"]
    now = time.time()
    began = [
        time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now - 3600 * (20 - n))) for n in range(20)
    ]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, env=os.environ) as watching:
        with Lineage.open(str(folder / ".downriver")) as lineage:
            for number, at in enumerate(began):
                count = 5 if number == 19 else 5000
                event = run("live", number, writes=[output("live", schema(x="int"), rows(count))])[
                    1
                ]
                lineage.ingest([encode({**event, "eventTime": at})])
        assert watching.stdout is not None
        patience = threading.Timer(60, watching.kill)
        patience.start()
        line = json.loads(watching.stdout.readline())
        patience.cancel()
        watching.send_signal(signal.SIGTERM)
        assert watching.wait(20) == 0
    assert line["event"] == "opened"
    assert line["finding"]["kind"] == "row_count_shift"


def test_kpis_print_their_history(folder: Path) -> None:
    found = json.loads(downriver("kpis", "--history", "--points", "3", "--json", cwd=folder).stdout)
    first, *_, last = found["points"]
    assert len(found["points"]) == 3
    assert (first["datasets"], last["datasets"]) == (1, 2)
    shown = downriver("kpis", "--history", "--points", "3", cwd=folder).stdout.splitlines()
    assert [line.split()[1] for line in shown[1:]] == [str(p["datasets"]) for p in found["points"]]
    assert shown[0].split()[:2] == ["datasets", "jobs"]
    recent = json.loads(
        downriver("kpis", "--history", "--since", "1d", "--json", cwd=folder).stdout
    )
    assert [point["datasets"] for point in recent["points"]] == [2] * 10
    for bad in (["--points", "3"], ["--since", "1d"], ["--history", "--fail-under", "coverage=1"],
                ["--history", "--since", "soon"], ["--history", "--points", "999999"]):  # fmt: skip
        assert downriver("kpis", *bad, cwd=folder).returncode == 2


def test_an_empty_store_has_no_kpi_history(tmp_path: Path) -> None:
    (tmp_path / "none.jsonl").write_text("")
    downriver("ingest", "none.jsonl", cwd=tmp_path)
    done = downriver("kpis", "--history", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "no history: the store has no event\n")


def test_kpis_list_what_a_share_leaves_out(folder: Path) -> None:
    listed = json.loads(downriver("kpis", "--list", "owner-coverage", "--json", cwd=folder).stdout)
    share = json.loads(downriver("kpis", "--json", cwd=folder).stdout)["owner_coverage"]
    assert listed["count"] == share["total"] - share["count"] == len(listed["examples"]) > 0
    shown = downriver("kpis", "--list", "owner-coverage", cwd=folder).stdout.splitlines()
    assert shown[-1] == f"{listed['count']} in all"
    assert len(shown) >= listed["count"] + 1
    for bad in (("--list", "columns"), ("--list", "orphans", "--history")):
        assert downriver("kpis", *bad, cwd=folder).returncode == 2


def test_kpis_incident_and_tags_print_text_and_json(folder: Path) -> None:
    assert "lineage coverage" in downriver("kpis", cwd=folder).stdout
    assert json.loads(downriver("kpis", "--json", cwd=folder).stdout)["datasets"] == 2
    incident = downriver("incident", "mart", "--at", AT, cwd=folder).stdout
    assert "\nFAILING mart since" in incident
    assert "owned by ann" in incident
    report = json.loads(downriver("incident", "mart", "--at", AT, "--json", cwd=folder).stdout)
    assert report["suspects"][0]["owners"] == ["ann"]
    assert "pii was set on 0 columns" in downriver("tags", cwd=folder).stdout
    assert json.loads(downriver("tags", "team:x", "--json", cwd=folder).stdout)["tag"] == "team:x"


def test_certified_exits_with_1_while_a_path_has_a_gap(folder: Path) -> None:
    assert downriver("certified", cwd=folder).stdout.startswith("No dataset is tagged certified")
    with Lineage.open(str(folder / ".downriver")) as lineage:
        lineage.ingest([encode(dataset_event("mart", tagged("certified")))])
    done = downriver("certified", cwd=folder)
    assert done.returncode == 1
    assert "load job: no event of this job contains an input" in done.stdout
    broken = json.loads(downriver("certified", "--json", cwd=folder).stdout)
    assert broken["integrity"]["percent"] == 0.0


def test_a_sample_alert_is_sent_to_every_channel(folder: Path) -> None:
    assert "no channels" in downriver("watch", "try", cwd=folder).stdout
    (folder / "downriver.yml").write_text(
        "watch:\n  quiet_hours: {from: '00:00', to: '23:59'}\n"
        "  channels: [{type: file, path: a.jsonl}, {type: webhook, url: '${HOOK}'}]\n"
    )
    dead = downriver("watch", "try", cwd=folder, HOOK="http://127.0.0.1:9/s3cret")
    assert dead.returncode == 1
    assert dead.stdout.startswith("sent file-1\nfailed webhook-2: ConnectionRefusedError")
    assert "s3cret" not in dead.stdout + dead.stderr
    with running_hook() as hook:
        alive = downriver("watch", "try", "--json", cwd=folder, HOOK=hook.url)
        assert alive.returncode == 0
        assert "test alert of" in hook.posts[0][1]["alerts"][0]["finding"]["message"]
    assert len((folder / "a.jsonl").read_text().splitlines()) == 2
