"""Speed of the web UI: its layout compared with dagre and elkjs; pan and zoom of 5,000 nodes.

`python -m bench.web [--nodes 100 1000] [--rounds 3] [--view 5000] [--limit 60]`. The layouts get
the same graphs, each library in a separate process; a library that needs more than `--limit`
seconds per round is stopped. dagre and elkjs are installed by npm into a temporary folder. Then
Chromium opens the Lineage page of a real server on a graph of `--view` nodes, moves and zooms it,
and reports the CPU time of the page's main thread. All times are CPU, not wall clock.
"""

from __future__ import annotations

import argparse
import json
import runpy
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playwright.sync_api import sync_playwright
from rich.console import Console
from tests.server import running_server
from tests.web.made_up_graph import made_up_graph, made_up_links

from bench.report import Table, median, print_table, render_ratio

if TYPE_CHECKING:
    from playwright.sync_api import CDPSession, Page

_ROOT = Path(__file__).parents[1]
_WEB = _ROOT / "web"
_PEERS = ("@dagrejs/dagre@3.1.0", "elkjs@0.12.0")
_CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
_FRAMES = 60
LAYOUT_MS = 150  # of 1,000 nodes
PAN_MS = 20
ZOOM_MS = 25


def _build() -> dict[str, Any]:
    return runpy.run_path(str(_WEB / "build.py"))


def _node() -> str:
    return str(_build()["find_node"]() / "node")


def _install_peers(folder: Path) -> None:
    node = Path(_node())
    script = node.parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    npm = [str(node), str(script)] if script.is_file() else [str(node.with_name("npm"))]
    command = [*npm, "install", "--no-audit", "--no-fund", "--prefix", str(folder), *_PEERS]
    subprocess.run(command, check=True, capture_output=True, cwd=folder)


def _bundle(folder: Path) -> Path:
    """Return our layout as one JavaScript file."""
    output = folder / "layout.mjs"
    rolldown = _WEB / "node_modules" / "rolldown" / "bin" / "cli.mjs"
    command = [_node(), str(rolldown), "src/graph/layout.ts", "--file", str(output)]
    subprocess.run(command, check=True, capture_output=True, cwd=_WEB)
    return output


def layouts(sizes: list[int], rounds: int, limit: int) -> Table:
    """Measure the layout of graphs of these sizes with our layout, dagre and elkjs."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _build()["install"]()
        ours = _bundle(folder)
        _install_peers(folder)
        rows = [row for size in sizes for row in _measure(size, folder, ours, rounds, limit)]
    return Table(
        title="Layout from left to right",
        headings=("nodes", "library", "CPU ms", "ours is", "crossings", "height px"),
        rows=rows,
        notes=(f"Target: 1,000 nodes in {LAYOUT_MS} ms. Median of {rounds} rounds.",),
    )


def _measure(size: int, folder: Path, ours: Path, rounds: int, limit: int) -> list[tuple[str, ...]]:
    graph = folder / f"graph_{size}.json"
    graph.write_text(json.dumps({"count": size, "links": made_up_links(size)}))
    rows: list[tuple[str, ...]] = []
    own = 0.0
    for library in ("downriver", "dagre", "elkjs"):
        script = str(_ROOT / "bench" / "web_layout.mjs")
        command = [_node(), script, library, str(graph), str(rounds), str(ours), str(folder)]
        try:
            done = subprocess.run(
                command, check=True, capture_output=True, text=True, timeout=rounds * limit
            )
        except subprocess.TimeoutExpired:
            rows.append((f"{size:,}", library, f"> {limit} s (wall)", "", "", ""))
            continue
        result = json.loads(done.stdout)
        cpu = median(result["times"])
        own = own or cpu
        verdict = f" (≤ {LAYOUT_MS}: {'yes' if cpu <= LAYOUT_MS else 'NO'})"
        note = verdict if library == "downriver" and size == 1000 else ""
        ratio = "" if library == "downriver" else f"{render_ratio(cpu / own)} faster"
        height = f"{result['height']:,.0f}"
        rows.append(
            (f"{size:,}", library, f"{cpu:,.0f}{note}", ratio, f"{result['crossings']:,}", height)
        )
    return rows


def views(size: int) -> Table:
    """Pan and zoom a graph of this size in Chromium."""
    chromium = next(filter(None, map(shutil.which, _CHROMIUM)), None)
    if chromium is None:
        sys.exit("no Chromium found: install it with the system's package manager")
    _build()["build"]()
    answer = json.dumps(made_up_graph(size))
    with (
        tempfile.TemporaryDirectory() as store,
        running_server(Path(store) / "store") as url,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--disable-dev-shm-usage"]
        )
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.route(
            "**/v1/graph?*",
            lambda route: route.fulfill(body=answer, content_type="application/json"),
        )
        page.goto(f"{url}/lineage?q=*&panel=none")
        page.get_by_text(f"{size:,} of {size:,} shown").wait_for()
        page.wait_for_timeout(3000)
        rows = _views_of(page)
        browser.close()
    return Table(
        title=f"{size:,} nodes in Chromium, CPU time of the main thread per frame",
        headings=("view", "pan ms", "zoom ms"),
        rows=rows,
        notes=(f"Target: pan ≤ {PAN_MS} ms, zoom ≤ {ZOOM_MS} ms. {_FRAMES} frames each.",),
    )


def _views_of(page: Page) -> list[tuple[str, ...]]:
    cdp = page.context.new_cdp_session(page)
    cdp.send("Performance.enable", {"timeDomain": "threadTicks"})
    box = page.locator(".react-flow").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    rows: list[tuple[str, ...]] = []
    for name, wheel in (("whole graph", 0), ("map of a part", -700), ("cards", -1100)):
        if wheel:
            for _ in range(10):
                page.mouse.wheel(0, wheel / 10)
                page.wait_for_timeout(40)
            page.wait_for_timeout(1500)
        pan, zoom = _pan(page, cdp, box), _zoom(page, cdp)
        rows.append((name, _judged(pan, PAN_MS), _judged(zoom, ZOOM_MS)))
    return rows


def _judged(cpu: float, target: int) -> str:
    return f"{cpu:.1f} (≤ {target}: {'yes' if cpu <= target else 'NO'})"


def _cpu(cdp: CDPSession) -> float:
    """Return the CPU time that the main thread spent on tasks, in milliseconds."""
    metrics = cdp.send("Performance.getMetrics")["metrics"]
    seconds: float = next(m["value"] for m in metrics if m["name"] == "TaskDuration")
    return 1000 * seconds


def _pan(page: Page, cdp: CDPSession, box: Any) -> float:
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    before = _cpu(cdp)
    for frame in range(_FRAMES):
        shift = frame if frame < _FRAMES // 2 else _FRAMES - frame
        page.mouse.move(x + 8 * shift, y + 3 * shift)
        _next_frame(page)
    cost = (_cpu(cdp) - before) / _FRAMES
    page.mouse.up()
    return cost


def _zoom(page: Page, cdp: CDPSession) -> float:
    before = _cpu(cdp)
    for frame in range(_FRAMES):
        page.mouse.wheel(0, -40 if frame < _FRAMES // 2 else 40)
        _next_frame(page)
    return (_cpu(cdp) - before) / _FRAMES


def _next_frame(page: Page) -> None:
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => done()))")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.web", description=__doc__)
    parser.add_argument("--nodes", type=int, nargs="*", default=[100, 1000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--view", type=int, default=5000, help="nodes to pan and zoom; 0 for none")
    parser.add_argument("--limit", type=int, default=60, help="seconds for one layout")
    arguments = parser.parse_args()
    console = Console(width=max(Console().width, 120))
    if arguments.nodes:
        print_table(layouts(arguments.nodes, arguments.rounds, arguments.limit), console)
    if arguments.view:
        print_table(views(arguments.view), console)


if __name__ == "__main__":
    main()
