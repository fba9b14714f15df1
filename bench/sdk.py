"""Time to register flows and to trace them from Python, compared with daita-agents.

`python -m bench.sdk [--flows 100000] [--stored 400] [--traces 5]`. Downriver uses the embedded
store, which is on disk when a call returns. Flows are registered in three ways: awaited one by
one, many at once with `asyncio.gather`, and as one list. daita-agents 0.15.1 is measured with its
default store, which rewrites a file at each flow (so with few flows: its time per flow grows with
their number), and in memory. networkx in memory represents a script without a lineage library; it
stores nothing. Both are installed from PyPI into a separate virtualenv.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import subprocess
import tempfile
import time
import venv
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from bench.report import Table, median, print_table, render_ms, render_ratio
from downriver import lineage

_ROOT = Path(__file__).parents[1]
_PEER = _ROOT / ".venv" / "peers" / "daita"
_PACKAGE = "daita-agents[lineage]==0.15.1"
_SCRIPT = Path(__file__).parent / "sdk_peers" / "daita_lineage.py"
_SEED = 7
_DEPTH = 5
_ROOT_ID = "table:t0"
_ONE_BY_ONE, _AT_ONCE = 500, 2000
REGISTER_TARGET, TRACE_TARGET = 1000.0, 100.0


class Figures(NamedTuple):
    """Seconds to register one flow and to trace, and the number of entities found."""

    register: float
    trace: float
    reached: int


def make_flows(count: int) -> list[list[str]]:
    """Return flows of a random tree: every table derives from an earlier one."""
    chance = random.Random(_SEED)
    return [
        [f"table:t{chance.randrange(number)}", f"table:t{number}", f"step {number}"]
        for number in range(1, count + 1)
    ]


def _install() -> Path:
    python = _PEER / "bin" / "python"
    if not (_PEER / "installed").exists():
        venv.create(_PEER, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", _PACKAGE], check=True)
        (_PEER / "installed").touch()
    return python


def _peer(python: Path, kind: str, flows: list[list[str]], traces: int) -> Figures:
    task = {"kind": kind, "flows": flows, "root": _ROOT_ID, "depth": _DEPTH, "traces": traces}
    done = subprocess.run(
        [python, str(_SCRIPT)], input=json.dumps(task), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{kind} failed:\n{done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return Figures(found["register"] / len(flows), median(found["trace"]), found["reached"])


async def _ours(folder: str, flows: list[list[str]], traces: int) -> dict[str, Figures]:
    async with lineage(folder) as tracker:
        began = time.perf_counter()
        await tracker.register_flows(
            {"source_id": source, "target_id": target, "transformation": step}
            for source, target, step in flows
        )
        listed = (time.perf_counter() - began) / len(flows)
        one = await _one_by_one(tracker, _ONE_BY_ONE)
        many = await _at_once(tracker, _AT_ONCE)
        await tracker.trace_downstream(_ROOT_ID, max_depth=_DEPTH)
        took, reached = [], 0
        for _ in range(traces):
            began = time.perf_counter()
            found = await tracker.trace_downstream(_ROOT_ID, max_depth=_DEPTH)
            took.append(time.perf_counter() - began)
            reached = found.count
    trace = median(took)
    return {
        "register_flows, one list": Figures(listed, trace, reached),
        "register_flow, many awaited at once": Figures(many, trace, reached),
        "register_flow, awaited one by one": Figures(one, trace, reached),
    }


async def _one_by_one(tracker: Any, count: int) -> float:
    began = time.perf_counter()
    for number in range(count):
        await tracker.register_flow(f"table:one{number}", f"table:one{number + 1}")
    return (time.perf_counter() - began) / count


async def _at_once(tracker: Any, count: int) -> float:
    began = time.perf_counter()
    await asyncio.gather(
        *(tracker.register_flow(f"table:all{n}", f"table:all{n + 1}") for n in range(count))
    )
    return (time.perf_counter() - began) / count


def run(flows: int, stored: int, traces: int) -> list[Table]:
    """Measure all libraries in one run."""
    python = _install()
    made = make_flows(flows)
    with tempfile.TemporaryDirectory() as folder:
        ours = asyncio.run(_ours(folder, made, traces))
    in_memory = _peer(python, "memory", made, min(traces, 2))
    on_disk = {n: _peer(python, "store", made[:n], 1) for n in (stored // 4, stored)}
    graph = _peer(python, "networkx", made, traces)
    return [
        _registering(ours, on_disk, graph, flows),
        _tracing(ours, in_memory, graph, flows),
    ]


def _registering(
    ours: dict[str, Figures], theirs: dict[int, Figures], graph: Figures, flows: int
) -> Table:
    (few, at_few), (most, at_most) = theirs.items()
    growth = (at_most.register - at_few.register) / (
        most - few
    )  # additional seconds per flow, for each stored flow
    rows = [
        (
            name,
            f"{found.register * 1e6:,.0f}",
            _ratio(at_most.register / found.register),
            _ratio((at_most.register + growth * (flows - most)) / found.register),
        )
        for name, found in ours.items()
    ]
    return Table(
        f"Registering flows from Python: Downriver's store, with {flows:,} flows in it",
        ("", "µs a flow", f"daita-agents with {most} takes", f"with {flows:,} would take"),
        [
            *rows,
            *(
                (f"daita-agents' store, {n} flows", f"{found.register * 1e6:,.0f}", "", "")
                for n, found in theirs.items()
            ),
            ("networkx, in memory only", f"{graph.register * 1e6:,.1f}", "", ""),
        ],
        (
            "On disk, with fsync, when a call returns. Concurrent calls share commits.",
            "daita-agents rewrites its file at each flow, so its time per flow grows with their "
            "number. The last column extrapolates linearly from the two measured sizes.",
        ),
    )


def _tracing(ours: dict[str, Figures], theirs: Figures, graph: Figures, flows: int) -> Table:
    mine = next(iter(ours.values()))
    return Table(
        f"trace_downstream, depth {_DEPTH}, among {flows:,} flows",
        ("", "ms", "entities found", "takes"),
        [
            ("Downriver, from the store", render_ms(mine.trace), f"{mine.reached:,}", "1×"),
            (
                "daita-agents in memory",
                render_ms(theirs.trace),
                f"{theirs.reached:,}",
                render_ratio(theirs.trace / mine.trace, TRACE_TARGET),
            ),
            (
                "networkx in memory",
                render_ms(graph.trace),
                f"{graph.reached:,}",
                render_ratio(graph.trace / mine.trace),
            ),
        ],
        ("Only Downriver's answer has status, confidence and completeness.",),
    )


def _ratio(ratio: float) -> str:
    return render_ratio(ratio, REGISTER_TARGET)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.sdk", description=__doc__)
    parser.add_argument("--flows", type=int, default=100_000)
    parser.add_argument("--stored", type=int, default=400)
    parser.add_argument("--traces", type=int, default=5)
    arguments = parser.parse_args()
    console = Console(width=120)
    for table in run(arguments.flows, arguments.stored, arguments.traces):
        print_table(table, console)


if __name__ == "__main__":
    main()
