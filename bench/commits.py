"""Replays real commits through the gate: `python -m bench.commits REPO... --last 15`.

For each of the newest commits of a Git repository that edit SQL, YAML or Python (no merges), it
runs `downriver gate --repo REPO --base COMMIT~1 --head COMMIT` with an empty store, as a command.
It prints the verdict, whether it is complete, the rule that decided with its reason, and the CPU
seconds of the command. Nothing is checked out and nothing in the repository changes.

A person has to compare the verdicts with the diffs (`git show COMMIT`), because the program cannot
decide whether an approval is correct. `--json FILE` stores the verdicts; commits in FILE are not
replayed. `--again` replays only the commits in FILE, and prints the verdicts that changed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from rich.console import Console
from rich.progress import Progress

from bench.report import Table, print_table
from downriver.impact import list_commits

if TYPE_CHECKING:
    from collections.abc import Iterator

_SECONDS = 300
_DECISIONS = {0: "APPROVED", 1: "BLOCKED", 3: "CAUTION"}


class Replay(msgspec.Struct, kw_only=True):
    """The verdict on one commit."""

    repository: str
    commit: str
    subject: str
    decision: str
    complete: bool = False
    decided_by: str = ""
    reason: str = ""
    unread: int = 0
    blind_spots: int = 0
    cpu_seconds: float = 0.0


class _Impact(msgspec.Struct):
    complete: bool
    unread: list[msgspec.Raw]
    blind_spots: list[msgspec.Raw]


class _Verdict(msgspec.Struct):
    decided_by: str
    reason: str
    impact: _Impact


def replay(repository: Path, commit: str, subject: str) -> Replay:
    """Run the gate on one commit."""
    command = [
        sys.executable, "-m", "downriver", "gate", "--repo", str(repository), "--store", ":memory:",
        "--base", f"{commit}~1", "--head", commit, "--format", "json",
    ]  # fmt: skip
    found = Replay(repository=repository.name, commit=commit, subject=subject, decision="NONE")
    before = os.times()
    try:
        done = subprocess.run(command, capture_output=True, check=False, timeout=_SECONDS)
    except subprocess.TimeoutExpired:
        found.reason = f"no verdict within {_SECONDS} s"
        return found
    after = os.times()
    found.cpu_seconds = round(
        after.children_user + after.children_system - before.children_user - before.children_system,
        2,
    )
    found.decision = _DECISIONS.get(done.returncode, "NONE")
    if found.decision == "NONE":
        found.reason = done.stderr.decode(errors="replace").strip()[-300:]
        return found
    verdict = msgspec.json.decode(done.stdout, type=_Verdict)
    found.decided_by, found.reason = verdict.decided_by, verdict.reason
    found.complete = verdict.impact.complete
    found.unread, found.blind_spots = len(verdict.impact.unread), len(verdict.impact.blind_spots)
    return found


def render_tables(replays: list[Replay]) -> Iterator[Table]:
    """Yield the verdict of every commit, and the number of each verdict by repository."""
    yield Table(
        "Commits",
        ("repository", "commit", "verdict", "complete", "CPU s", "decided by", "reason"),
        [
            (r.repository, r.commit[:9], r.decision, "yes" if r.complete else "no",
             f"{r.cpu_seconds:.1f}", r.decided_by, r.reason)
            for r in replays
        ],
    )  # fmt: skip
    names = sorted({r.repository for r in replays})
    rows = []
    for name in [*names, "all"]:
        chosen = [r for r in replays if name in (r.repository, "all")]
        counts = Counter(r.decision for r in chosen)
        decisions = (str(counts[d]) for d in ("APPROVED", "CAUTION", "BLOCKED", "NONE"))
        cpu = sorted(r.cpu_seconds for r in chosen)
        rows.append((name, str(len(chosen)), *decisions, f"{cpu[len(cpu) // 2]:.1f}"))
    headings = ("repository", "commits", "APPROVED", "CAUTION", "BLOCKED", "no verdict")
    yield Table("Verdicts", (*headings, "median CPU s"), rows)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.commits", description=__doc__)
    parser.add_argument("repositories", nargs="*", type=Path, metavar="REPO")
    parser.add_argument("--last", type=int, default=15, help="commits of each repository")
    parser.add_argument("--path", action="append", default=[], help="only commits that edit this")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep the verdicts in this file")
    parser.add_argument("--again", action="store_true", help="replay the commits of FILE")
    arguments = parser.parse_args()
    kept: dict[str, Replay] = {}
    if arguments.json is not None and arguments.json.exists():
        stored = msgspec.json.decode(arguments.json.read_bytes(), type=list[Replay])
        kept = {one.commit: one for one in stored}
    todo = [
        (repository, commit, subject)
        for repository in arguments.repositories
        for commit, _, subject in list_commits(repository, arguments.last, arguments.path)
        if (commit in kept) == arguments.again
    ]
    console = Console(width=max(Console().width, 220), emoji=False, highlight=False)
    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task("commits", total=len(todo))
        for repository, commit, subject in todo:
            began = time.perf_counter()
            found = replay(repository, commit, subject)
            before = kept.get(commit)
            if before is not None and before.decision != found.decision:
                console.print(f"{commit[:9]} {before.decision} -> {found.decision}: {found.reason}")
            kept[commit] = found
            if arguments.json is not None:
                arguments.json.write_bytes(msgspec.json.encode(list(kept.values())))
            took = time.perf_counter() - began
            bar.update(task, advance=1, description=f"{repository.name} {took:.0f} s")
    names = {repository.name for repository in arguments.repositories}
    for table in render_tables([one for one in kept.values() if one.repository in names]):
        print_table(table, console)


if __name__ == "__main__":
    main()
