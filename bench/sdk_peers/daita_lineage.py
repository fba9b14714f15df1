"""Register flows with the lineage plugin of daita-agents, or with networkx, and trace them.

This runs in a virtualenv with both. It reads a task as JSON from stdin and prints seconds.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from typing import Any


def main() -> None:
    task = json.load(sys.stdin)
    flows = task["flows"]
    measure = {"store": _store, "memory": _memory, "networkx": _networkx}[task["kind"]]
    json.dump(measure(flows, task["root"], task["depth"], task["traces"]), sys.stdout)


def _memory(flows: list[list[str]], root: str, depth: int, traces: int) -> dict[str, Any]:
    from daita.plugins import lineage

    return asyncio.run(_plugin(lineage(), flows, root, depth, traces))


def _store(flows: list[list[str]], root: str, depth: int, traces: int) -> dict[str, Any]:
    from daita.plugins import lineage

    os.chdir(tempfile.mkdtemp())
    tracker = lineage()
    tracker.initialize("bench")  # as an agent with this plugin does
    return asyncio.run(_plugin(tracker, flows, root, depth, traces))


async def _plugin(
    tracker: Any, flows: list[list[str]], root: str, depth: int, traces: int
) -> dict[str, Any]:
    began = time.perf_counter()
    for source, target, transformation in flows:
        await tracker.register_flow(source, target, transformation=transformation)
    registered = time.perf_counter() - began
    took, found = [], {}
    for _ in range(traces):
        began = time.perf_counter()
        found = await tracker.trace_lineage(root, "downstream", max_depth=depth)
        took.append(time.perf_counter() - began)
    return {"register": registered, "trace": took, "reached": found["downstream_count"]}


def _networkx(flows: list[list[str]], root: str, depth: int, traces: int) -> dict[str, Any]:
    import networkx as nx

    graph = nx.DiGraph()
    began = time.perf_counter()
    for source, target, transformation in flows:
        graph.add_edge(source, target, transformation=transformation)
    registered = time.perf_counter() - began
    took, found = [], []
    for _ in range(traces):
        began = time.perf_counter()
        depths = nx.single_source_shortest_path_length(graph, root, cutoff=depth)
        found = [
            {
                "entity_id": node,
                "depth": level,
                "transformation": graph.edges[next(graph.predecessors(node)), node],
            }
            for node, level in depths.items()
            if level
        ]
        took.append(time.perf_counter() - began)
    return {"register": registered, "trace": took, "reached": len(found)}


if __name__ == "__main__":
    main()
