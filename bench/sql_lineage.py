"""CPU time of SQL column lineage, compared with three peers, each in its own virtualenv.

`python -m bench.sql_lineage [--quick]`. The peers are installed from PyPI on the first run.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import venv
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from bench.report import Table, print_table, render_ratio
from bench.sql_databases import make_tpch

_HERE = Path(__file__).parent
_VENVS = _HERE.parent / ".venv" / "peers"


class Peer(NamedTuple):
    """Another tool for column lineage, and the ratio to Downriver that is the target."""

    name: str
    script: str
    package: str | None
    target: float | None


US = Peer("Downriver", "read_downriver.py", None, None)
PEERS = (
    Peer("Downriver, dialect guessed", "read_downriver_guessing.py", None, None),
    Peer("sqlglot.lineage, at once", "read_sqlglot_at_once.py", None, 1.67),
    Peer("sqlglot.lineage", "read_sqlglot.py", None, 2),
    Peer("sqllineage", "read_sqllineage.py", "sqllineage>=1.5,<2", 10),
    Peer("DataHub", "read_datahub.py", "acryl-datahub[sql-parser]>=1.7,<2", 10),
)


def statements() -> dict[str, str]:
    """Return the queries of TPC-H as CREATE TABLE AS."""
    text = (_HERE / "sql_statements" / "tpch.sql").read_text("utf-8")
    parts = re.split(r"^-- name: (\w+)\n", text, flags=re.MULTILINE)[1:]
    queries = zip(parts[::2], parts[1::2], strict=True)
    return {
        name: f"create table answer_{name} as\n{query.strip().rstrip(';')}"
        for name, query in queries
        if query.strip().lower().startswith(("select", "with"))
    }


def measure(peer: Peer, rounds: int) -> dict[str, dict[str, float | str]]:
    """Return the time of one peer for each statement."""
    task = {"statements": statements(), "schema": make_tpch().schema, "rounds": rounds}
    done = subprocess.run(
        [str(_python(peer)), str(_HERE / "sql_peers" / peer.script)],
        input=json.dumps(task),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{peer.name} failed:\n{done.stderr[-2000:]}")
    answer: dict[str, dict[str, float | str]] = json.loads(done.stdout)
    return answer


def _python(peer: Peer) -> Path:
    if peer.package is None:
        return Path(sys.executable)
    folder = _VENVS / peer.name.lower()
    python = folder / "bin" / "python"
    if not (folder / "installed").exists():
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", peer.package], check=True)
        (folder / "installed").touch()
    return python


def run(*, quick: bool) -> Table:
    """Measure all and compare."""
    rounds = 3 if quick else 15
    ours = {name: float(found["ms"]) for name, found in measure(US, rounds).items()}
    rows = [("Downriver", f"{len(ours)}", f"{statistics.median(ours.values()):.2f}", "")]
    for peer in PEERS:
        found = measure(peer, rounds)
        theirs = {name: float(f["ms"]) for name, f in found.items() if "ms" in f}
        ratios = [theirs[name] / ours[name] for name in theirs]
        rows.append(
            (
                peer.name,
                f"{len(theirs)}",
                f"{statistics.median(theirs.values()):.2f}" if theirs else "",
                render_ratio(statistics.median(ratios), peer.target) if ratios else "",
            )
        )
    return Table(
        "Column lineage of TPC-H as CREATE TABLE AS, schema known, CPU time",
        ("", "statements read", "median ms", "ratio to Downriver (median)"),
        rows,
        (
            "sqlglot.lineage: parsed and qualified once, then called for each output column.",
            "sqlglot.lineage, at once: one call for all output columns.",
        ),
    )


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    print_table(run(quick=parser.parse_args().quick), Console(width=120))


if __name__ == "__main__":
    main()
