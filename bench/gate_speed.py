"""Time of `downriver gate --base` on a repository of many dbt models, compared with `dbt parse`.

`python -m bench.gate_speed [--models 1000] [--rounds 3] [--hub]`. A dbt project is generated,
committed and captured once. Then a column of one staging model is renamed. With `--hub`, four in
five models read that model. Both tools are started as commands, alternately. A cold run starts
without cached files (Python's compiled files, dbt's `partial_parse.msgpack`), a warm run with them.
dbt is installed from PyPI into a separate virtualenv on the first run. The tools do different work:
dbt parses the project; the gate also determines the effect of the edit on every model.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

from rich.console import Console

from bench.report import Table, median, print_table, render_ratio
from downriver.service import Lineage

_ROOT = Path(__file__).parents[1]
_DBT = _ROOT / ".venv" / "peers" / "dbt"
_PACKAGES = ("dbt-core>=1.9,<1.11", "dbt-duckdb>=1.9,<1.11")
_COLUMNS = ("id", "customer_id", "amount", "status", "created_at", "country")
_STAGING = "select {columns} from {{{{ source('raw', 't{n}') }}}} where status <> 'void'\n"
_MART = """select a.id, a.customer_id, a.amount + b.amount as amount, a.status, b.created_at,
  coalesce(a.country, b.country) as country
from {{{{ ref('m{left}') }}}} as a
join {{{{ ref('m{right}') }}}} as b on a.id = b.id
"""


def write_project(folder: Path, models: int, *, hub: bool) -> None:
    """Write a dbt project: a fifth of its models staging, the others joins of earlier ones."""
    (folder / "models").mkdir(parents=True)
    (folder / "dbt_project.yml").write_text("name: big\nversion: '1.0'\nprofile: big\n")
    (folder / ".gitignore").write_text("target/\nlogs/\n*.duckdb\n")
    profile = "{type: duckdb, path: big.duckdb}"
    (folder / "profiles.yml").write_text(f"big:\n  target: dev\n  outputs:\n    dev: {profile}\n")
    staging = max(models // 5, 1)
    listed = "".join(f"      - name: t{n}\n" for n in range(staging))
    (folder / "models" / "sources.yml").write_text(
        f"sources:\n  - name: raw\n    tables:\n{listed}"
    )
    for n in range(models):
        text = (
            _STAGING.format(n=n, columns=", ".join(_COLUMNS))
            if n < staging
            else _MART.format(left=n - staging, right=0 if hub else _other(n - staging, n))
        )
        (folder / "models" / f"m{n}.sql").write_text(text)


def _other(left: int, number: int) -> int:
    return max(left - number % 7 - 1, 0)


def _git(folder: Path, *arguments: str) -> None:
    options = ["-c", "user.name=bench", "-c", "user.email=bench@example.org"]
    subprocess.run(["git", *options, *arguments], cwd=folder, check=True, capture_output=True)


def _install_dbt() -> Path:
    if not (_DBT / "installed").exists():
        venv.create(_DBT, with_pip=True, clear=True)
        python = _DBT / "bin" / "python"
        subprocess.run([python, "-m", "pip", "install", "--quiet", *_PACKAGES], check=True)
        (_DBT / "installed").touch()
    return _DBT / "bin" / "dbt"


def _timed(command: list[str], folder: Path, allowed: tuple[int, ...], **more: str) -> float:
    env = {**os.environ, **more}
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # a warm start is one with compiled files
    began = time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    took = time.perf_counter() - began
    if done.returncode not in allowed:
        raise SystemExit(f"{command[0]} failed:\n{done.stdout[-1000:]}{done.stderr[-1000:]}")
    return took


def _gate(folder: Path, store: Path, compiled: Path) -> float:
    """Run the gate with Python's compiled files in `compiled`: an empty folder is a cold start."""
    return _timed(
        [sys.executable, "-m", "downriver", "gate", "--base", "HEAD", "--store", str(store)],
        folder, (0, 1, 3), PYTHONPYCACHEPREFIX=str(compiled),
    )  # fmt: skip


def _parse(dbt: Path, folder: Path, compiled: Path) -> float:
    return _timed(
        [str(dbt), "parse", "--profiles-dir", "."],
        folder, (0,), PYTHONPYCACHEPREFIX=str(compiled), DBT_SEND_ANONYMOUS_USAGE_STATS="false",
    )  # fmt: skip


def measure(models: int, rounds: int, *, hub: bool) -> dict[str, list[float]]:
    """Return the seconds that each run took."""
    dbt = _install_dbt()
    found: dict[str, list[float]] = {
        "gate cold": [],
        "dbt cold": [],
        "gate warm": [],
        "dbt warm": [],
    }
    with tempfile.TemporaryDirectory() as place:
        folder, store = Path(place) / "big", Path(place) / "store"
        write_project(folder, models, hub=hub)
        _git(folder, "init", "-q")
        _git(folder, "add", "-A")
        _git(folder, "commit", "-qm", "first")
        with Lineage.open(str(store)) as lineage:
            lineage.capture.scan(folder, dialect="duckdb")
        edited = folder / "models" / "m0.sql"
        edited.write_text(edited.read_text().replace("amount", "amount as amount_eur"))
        for turn in range(rounds):
            kept = Path(place) / f"compiled{turn}"
            shutil.rmtree(folder / "target", ignore_errors=True)
            for heat in ("cold", "warm"):
                found[f"gate {heat}"].append(_gate(folder, store, kept / "gate"))
                found[f"dbt {heat}"].append(_parse(dbt, folder, kept / "dbt"))
    return found


def table_of(models: int, found: dict[str, list[float]]) -> Table:
    """Return the medians, and how many times longer dbt takes."""
    middle = {name: median(times) for name, times in found.items()}
    rows = [
        (
            heat,
            f"{middle[f'gate {heat}']:.1f} s",
            f"{middle[f'dbt {heat}']:.1f} s",
            render_ratio(middle[f"dbt {heat}"] / middle[f"gate {heat}"]),
        )
        for heat in ("cold", "warm")
    ]
    headings = ("start", "downriver gate --base", "dbt parse", "ratio")
    load = f"load average of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    return Table(f"Gate: one edit among {models:,} dbt models", headings, rows, (load,))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--hub", action="store_true", help="edit a model that most others read")
    options = parser.parse_args()
    found = measure(options.models, options.rounds, hub=options.hub)
    print_table(table_of(options.models, found), Console())


if __name__ == "__main__":
    main()
