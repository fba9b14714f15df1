"""The examples of the agent run without a key, and with the API of a model."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.fake_openai import TextReply, ToolReply, fake_openai
from tests.server import running_server

ROOT = Path(__file__).parents[2]
NOTICE = "downriver: no API key for gpt-4o-mini (OPENAI_API_KEY is not set); answering offline\n"


def run(script: str, folder: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    hidden = ("DOWNRIVER", "OPENAI", "OPENLINEAGE")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(hidden)}
    return subprocess.run(
        [sys.executable, str(ROOT / "examples" / "agent" / f"{script}.py")],
        cwd=folder,
        env={**kept, **settings},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def printed(script: str, folder: Path) -> str:
    done = run(script, folder)
    assert done.returncode == 0, done.stderr
    assert done.stderr.replace(NOTICE, "") == ""
    return done.stdout


def test_a_graph_is_built_from_words(tmp_path: Path) -> None:
    told = printed("build", tmp_path)
    assert "Registered 10 flows." in told
    assert "table:rider_profile → model:churn" in told
    assert "model:churn → table:riders_at_risk" in told
    assert "Downstream of table:raw_riders: 4 datasets" in told
    assert "Not understood" not in told


def test_the_gate_blocks_one_change_and_warns_of_another(tmp_path: Path) -> None:
    first, second = printed("gate", tmp_path).split("== retire")
    assert "DECISION: BLOCKED\nRISK: HIGH\nAFFECTED SYSTEMS: 4\n" in first
    assert "DECISION: CAUTION\nRISK: MEDIUM\nAFFECTED SYSTEMS: 2\n" in second


def test_the_steward_picks_the_tool_for_each_question(tmp_path: Path) -> None:
    told = printed("steward", tmp_path)
    assert "Original sources: api:stripe." in told
    assert "table:rider_profile → model:offers_v2" in told
    assert "flowchart LR" in told
    assert "risk HIGH" in told
    assert "api:stripe → table:raw_charges → table:station_revenue → table:revenue_board" in told
    assert "I do not know" not in told


def test_lineage_is_read_from_sql(tmp_path: Path) -> None:
    told = printed("sql_jobs", tmp_path)
    assert "['raw_trips'] -> ['trips_clean']" in told
    assert "rider_trips.minutes comes from ['trips_clean.minutes']" in told


def test_a_decorated_function_records_its_lineage(tmp_path: Path) -> None:
    assert "app_events feeds ['session_figures']" in printed("decorated", tmp_path)


def test_a_whole_day(tmp_path: Path) -> None:
    told = printed("whole_day", tmp_path)
    assert "warehouse pipeline (nightly at 3am)" in told
    assert "DECISION: BLOCKED" in told
    assert "idle_riders" in told
    assert "Tools used: describe_pipeline, gate_change, export_lineage" in told


def test_the_first_example_with_a_model_that_calls_tools(tmp_path: Path) -> None:
    steps = [{"source_id": "api:accounts", "target_id": "table:raw_riders"}]
    with fake_openai(
        ToolReply("register_pipeline", {"name": "riders", "steps": steps}),
        TextReply("I registered one flow."),
        ToolReply("trace_downstream", {"entity_id": "api:accounts"}),
        TextReply("raw_riders depends on it."),
    ) as fake:
        done = run("build", tmp_path, OPENAI_API_KEY="sk-test", OPENAI_BASE_URL=fake.url)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "I registered one flow.\n\nraw_riders depends on it.\n"
    assert '"steps_registered":1' in str(fake.requests[1]["messages"]).replace(" ", "")
    assert "table:raw_riders" in str(fake.requests[-1]["messages"])


@pytest.mark.parametrize("script", ["build", "steward"])
def test_the_examples_work_with_a_server(tmp_path: Path, script: str) -> None:
    with running_server(tmp_path / "store") as url:
        done = run(script, tmp_path, DOWNRIVER_URL=url)
    assert done.returncode == 0, done.stderr
    assert "Downstream of table:raw_riders: 4 datasets" in done.stdout or script == "steward"
    assert not (tmp_path / ".downriver" / "lineage.db").exists()
