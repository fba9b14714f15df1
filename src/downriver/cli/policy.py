"""`downriver policy`: propose a policy, and test one on the commits of a repository."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from downriver.capture.scan import Repository
from downriver.cli.output import JsonOption, err, escape, out, print_json, progress_bar
from downriver.errors import DownriverError, InvalidRequestError
from downriver.impact import decide, list_commits, propose_policy, read_policy
from downriver.model.verdicts import Decision
from downriver.service import Lineage
from downriver.store import MEMORY

if TYPE_CHECKING:
    from downriver.impact import Commit, Policy
    from downriver.model.verdicts import Verdict

_REASON = 90  # characters of a reason in the table
_COLORS = {"APPROVED": "green", "CAUTION": "yellow", "BLOCKED": "red"}

RepoOption = Annotated[
    Path | None,
    typer.Option(
        "--repo", metavar="DIR", help="The Git repository. Default: that of the working directory."
    ),
]
PolicyOption = Annotated[
    Path | None,
    typer.Option(
        "--policy", metavar="FILE", help="The policy file. Default: downriver.yml, if it exists."
    ),
]


def propose(
    repo: RepoOption = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write the policy to this file, which must not exist.",
        ),
    ] = None,
) -> None:
    """Propose a policy from the tags, meta, owners and exposures of the dbt projects.

    By default the policy is printed. `--output downriver.yml` writes the file that
    `downriver gate` reads.
    """
    text = propose_policy(Repository(repo or Path.cwd()))
    if output is None:
        sys.stdout.write(text)
        return
    try:
        with output.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as exc:
        raise InvalidRequestError("--output", f"{output} exists; remove it first") from exc
    except OSError as exc:
        raise InvalidRequestError("--output", f"{output}: {exc.strerror}") from exc
    err.print(f"written to {escape(str(output))}")


class PastVerdict(msgspec.Struct, kw_only=True):
    """The decision of a policy about a commit. Without a decision, `reason` is the error."""

    commit: str
    date: str
    subject: str
    decision: str
    complete: bool = False
    decided_by: str = ""
    reason: str = ""


def replay(
    last: Annotated[
        int, typer.Option("--last", metavar="N", min=1, help="Test the last N commits.")
    ] = 50,
    path: Annotated[
        list[str] | None,
        typer.Option(
            "--path", metavar="PATH", help="Test only commits that edit this path. May be repeated."
        ),
    ] = None,
    repo: RepoOption = None,
    policy: PolicyOption = None,
    json: JsonOption = False,
) -> None:
    """Show what a policy decides about the last commits of a repository.

    Each commit that edits code is compared with its parent. The command uses no store and does not
    change the working tree.
    """
    folder = repo or Path.cwd()
    rules = read_policy(policy, repo)
    commits = list_commits(folder, last, path or ())
    past_verdicts = []
    with progress_bar("commits") as bar:
        task = bar.add_task("Policy", total=len(commits))
        for commit in commits:
            past_verdicts.append(_decide(folder, commit, rules))
            bar.advance(task)
    if json:
        print_json(past_verdicts)
    else:
        _print_table(past_verdicts)


def _decide(folder: Path, commit: Commit, rules: Policy) -> PastVerdict:
    past = PastVerdict(commit=commit.id, date=commit.date, subject=commit.subject, decision="none")
    try:
        with Lineage.open(MEMORY) as lineage:
            verdict = decide(lineage.impact.of_commits(folder, f"{commit.id}~1", commit.id), rules)
    except DownriverError as error:
        past.reason = error.message
        return past
    return _with_verdict(past, verdict)


def _with_verdict(past: PastVerdict, verdict: Verdict) -> PastVerdict:
    return msgspec.structs.replace(
        past,
        decision=verdict.decision.value,
        complete=verdict.impact.complete,
        decided_by=verdict.decided_by,
        reason=verdict.reason,
    )


def _print_table(past_verdicts: list[PastVerdict]) -> None:
    for past in past_verdicts:
        color = _COLORS.get(past.decision, "magenta")
        reason = past.reason if len(past.reason) <= _REASON else f"{past.reason[:_REASON]}…"
        out.print(
            f"{past.commit[:9]} {past.date} [{color}]{past.decision:<8}[/] {escape(past.subject)}"
        )
        out.print(f"          {past.decided_by}: {escape(reason)}")
    counts = Counter(past.decision for past in past_verdicts)
    listed = ", ".join(f"{counts[d.value]} {d.value}" for d in Decision)
    none = f", {counts['none']} without a decision" if counts["none"] else ""
    rules = Counter(past.decided_by for past in past_verdicts if past.decided_by)
    out.print(f"{len(past_verdicts)} commits: {listed}{none}")
    for rule, number in rules.most_common():
        out.print(f"  {number:>3} decided by {rule}")
