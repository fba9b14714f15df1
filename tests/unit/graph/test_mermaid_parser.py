"""Mermaid itself reads what we draw.

Needs Node and Mermaid, which are no dependencies of ours: `npm install mermaid@11 jsdom` in any
folder, and its path in DOWNRIVER_MERMAID.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.unit.graph.test_draw import NASTY, column, dataset, edge, job, trace

from downriver.graph.draw import render_mermaid

MODULES = os.environ.get("DOWNRIVER_MERMAID", "")
SCRIPT = Path(__file__).with_name("parse_mermaid.mjs")

pytestmark = pytest.mark.skipif(
    not (MODULES and shutil.which("node")),
    reason="DOWNRIVER_MERMAID names no folder with mermaid and jsdom; only our own check was made",
)


def test_mermaid_parses_every_name_we_can_think_of(tmp_path):
    drawings = [
        trace([dataset(name, other), job(other), column(name, name, other)])
        for name, other in zip(NASTY, reversed(NASTY), strict=True)
    ]
    nodes = [column(name, "x", system) for name in NASTY[:8] for system in ("a", "b")]
    drawings.append(trace(nodes, [edge(nodes[0], node, subtype=node.name) for node in nodes[1:]]))
    files = []
    for number, drawn in enumerate(drawings):
        files.append(tmp_path / f"{number}.mmd")
        files[-1].write_text(render_mermaid(drawn), "utf-8")
    command = ["node", str(SCRIPT), MODULES, *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["flowchart-v2"] * len(files)
