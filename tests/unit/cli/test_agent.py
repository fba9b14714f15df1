"""`downriver agent` on the command line."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from downriver import Agent
from downriver.agent.agent import ROLES
from downriver.cli.agent import AgentRole

if TYPE_CHECKING:
    from pathlib import Path


def downriver(folder: Path, *options: str, said: str = "") -> subprocess.CompletedProcess[str]:
    hidden = ("DOWNRIVER", "OPENAI", "ANTHROPIC")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(hidden)}
    return subprocess.run(
        [sys.executable, "-m", "downriver", "agent", "--store", str(folder / "store"), *options],
        input=said,
        cwd=folder,
        env=kept,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_prompt_gets_an_answer(tmp_path: Path) -> None:
    done = downriver(tmp_path, "-p", "raw_a is cleaned into b", "--allow-writes")
    assert done.stdout.startswith("Registered 1 flow.")
    done = downriver(tmp_path, "-p", "What depends on raw_a?", "--json")
    answer = json.loads(done.stdout)
    assert answer["model"] == "offline"
    assert "table:b" in answer["answer"]
    (call,) = answer["calls"]
    assert call["tool"] == "trace_downstream"
    assert call["answer"]["complete"] is True


def test_without_write_permission_nothing_is_written(tmp_path: Path) -> None:
    done = downriver(tmp_path, "-p", "raw_a is cleaned into b")
    assert "Would register 1 flow." in done.stdout
    assert "--allow-writes" in done.stdout
    assert "no Downriver store" in done.stderr
    assert "`downriver ingest FILE`" in done.stderr
    assert list(tmp_path.iterdir()) == []
    done = downriver(tmp_path, "-p", "What is b?")
    assert "Not found" in done.stdout or "Cannot answer" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_an_existing_store_is_read(tmp_path: Path) -> None:
    downriver(tmp_path, "-p", "raw_a is cleaned into b", "--allow-writes")
    done = downriver(tmp_path, "-p", "What is b?")
    assert (done.stderr, "table:b" in done.stdout) == ("", True)


def test_a_read_only_agent_creates_no_store(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DOWNRIVER_STORE", raising=False)
    notices: list[str] = []

    async def ask() -> str:
        async with Agent(model="offline", notify=notices.append) as agent:
            return await agent.run("What depends on raw_a?")

    assert "raw_a" in asyncio.run(ask())
    assert "no Downriver store" in notices[0]
    assert list(tmp_path.iterdir()) == []


def test_a_prompt_from_standard_input(tmp_path: Path) -> None:
    done = downriver(tmp_path, "-p", "-", said="- raw_a feeds b\n- b feeds c\n")
    assert "Would register 2 flows." in done.stdout


def test_a_model_without_a_key_is_announced_on_stderr(tmp_path: Path) -> None:
    done = downriver(tmp_path, "-p", "help", "--model", "gpt-4o-mini")
    assert "no API key for gpt-4o-mini" in done.stderr
    assert done.returncode == 0


def test_a_conversation(tmp_path: Path) -> None:
    said = "My pipeline (daily):\n- raw_a feeds b\n\n\nWhat depends on raw_a?\nexit\nhelp\n"
    done = downriver(tmp_path, "--allow-writes", said=said)
    assert done.returncode == 0
    assert "Registered 1 flow." in done.stdout
    assert "Downstream of table:raw_a" in done.stdout
    assert "I understand" not in done.stdout  # `exit` came before `help`


def test_the_gate_role_decides(tmp_path: Path) -> None:
    downriver(tmp_path, "-p", "raw_a is cleaned into b", "--allow-writes")
    done = downriver(tmp_path, "--role", "gate", "-p", "What breaks if I drop raw_a?")
    assert done.stdout.startswith("DECISION: BLOCKED")


@pytest.mark.parametrize("options", [["--json"], ["--role", "poet"], ["-p", " "]])
def test_invalid_options_are_refused(tmp_path: Path, options: list[str]) -> None:
    done = downriver(tmp_path, *options)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_the_roles_of_the_command_are_those_of_the_agent() -> None:
    assert [role.value for role in AgentRole] == list(ROLES)
