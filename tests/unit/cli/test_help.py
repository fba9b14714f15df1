"""The help of every command, and shell completion."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from tests.unit.cli.command import downriver

from downriver.cli.app import EXAMPLES, build_command, load_command
from downriver.cli.command_list import COMMANDS, SECTIONS, CommandEntry

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def leaves(entries: tuple[CommandEntry, ...] = COMMANDS) -> Iterator[CommandEntry]:
    for entry in entries:
        if entry.target:
            yield entry
        yield from leaves(entry.commands)


ENTRIES = {entry.target: entry for entry in leaves()}


@pytest.mark.parametrize("target", ENTRIES)
def test_the_help_of_a_command_describes_every_option_in_a_sentence(target: str) -> None:
    command = load_command(ENTRIES[target])
    prose = (command.help or "").partition(f"\b{EXAMPLES}")[0]
    assert prose.strip().endswith("."), "a command's docstring is its help"
    unfinished = [p.name for p in command.params if not (p.help or "").strip().endswith(".")]
    assert not unfinished


def examples() -> Iterator[str]:
    for entry in ENTRIES.values():
        shown = (load_command(entry).help or "").partition(f"\b{EXAMPLES}\n")[2]
        yield from (line.strip() for line in shown.splitlines())


@pytest.mark.parametrize("line", list(examples()))
def test_the_examples_in_the_help_have_options_that_exist(line: str) -> None:
    program, *words = shlex.split(line.partition(" > ")[0])
    assert program == "downriver"
    entries = COMMANDS
    while entries:
        entry = next(entry for entry in entries if entry.name == words[0])
        entries, words = entry.commands, words[1:]
    load_command(entry).make_context(entry.name, words)


@pytest.mark.parametrize("target", ENTRIES)
def test_the_help_names_the_value_of_every_option(target: str) -> None:
    options = [p for p in load_command(ENTRIES[target]).params if p.param_type_name == "option"]
    valued = [p for p in options if not p.is_flag and "|" not in p.display_type(None)]
    assert not [p.name for p in valued if p.metavar is None]
    shown = [p.metavar or p.display_type(None) for p in options if not p.is_flag]
    assert not [name for name in shown if len(name) > 24], "the help breaks it into two lines"


@pytest.mark.parametrize("target", ENTRIES)
def test_help_shows_no_type_of_python(
    target: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    load_command(ENTRIES[target]).main(["--help"], prog_name="downriver", standalone_mode=False)
    shown = capsys.readouterr().out
    assert "--help" in shown
    assert not re.findall(r"<\w+|list\[", shown)


def test_the_list_of_commands_has_a_line_for_each(capsys: pytest.CaptureFixture[str]) -> None:
    build_command().main(["--help"], prog_name="downriver", standalone_mode=False)
    lines = capsys.readouterr().out.splitlines()
    assert all(any(f" {section.title} " in line for line in lines) for section in SECTIONS)
    for entry in COMMANDS:
        assert any(f" {entry.name} " in line and entry.help in line for line in lines), entry.name


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("downriver tra", {"trace"}),
        ("downriver lake st", {"status", "stream"}),
        ("downriver watch ", {"findings", "try"}),
        ("downriver tags ", {"apply", "propagate", "columns", "reach"}),
        ("downriver tags reach --fu", {"--full-names"}),
        ("downriver trace --up", {"--upstream"}),
    ],
)
def test_shells_complete_commands_and_options(words: str, expected: set[str]) -> None:
    environment = {
        **os.environ,
        "_DOWNRIVER_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split(" ")) - 1),
    }
    program = "import sys; sys.argv = ['downriver']; from downriver.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True
    )
    assert set(done.stdout.split()) == expected


def test_a_group_runs_its_default_command_unless_an_argument_names_another(tmp_path: Path) -> None:
    (tmp_path / "none.jsonl").write_text("")
    downriver("ingest", "none.jsonl", cwd=tmp_path)
    named = downriver("tags", "reach", "pii", "--json", cwd=tmp_path)
    assert json.loads(named.stdout)["tag"] == "pii"
    for arguments in ((), ("pii",), ("--json",), ("--full-names", "pii", "--json")):
        done = downriver("tags", *arguments, cwd=tmp_path)
        assert (done.returncode, "pii" in done.stdout) == (0, True)
    assert "reach" in downriver("tags", "--help", cwd=tmp_path).stdout
    assert downriver("tags", "apply", cwd=tmp_path).returncode == 2


def test_the_usage_line_names_arguments_without_braces(tmp_path: Path) -> None:
    usage = downriver("impact", "--help", cwd=tmp_path).stdout
    assert "downriver impact [OPTIONS] ENTITY|DDL [COLUMN]..." in usage
