"""A large lineage graph as `GET /v1/graph` answers it, made up from a seed."""

from __future__ import annotations

import random
from typing import Any

COLUMNS = ("id", "customer_id", "amount", "status", "created_at", "country", "email", "updated_at")
_MOMENT = "2026-10-01T10:00:00Z"


def made_up_links(count: int, seed: int = 7) -> list[tuple[int, int]]:
    """Return edges of a graph without cycles: most nodes read what was made shortly before."""
    chance = random.Random(seed)
    links: set[tuple[int, int]] = set()
    for node in range(1, count):
        for _ in range(chance.choices((1, 2, 3), (58, 24, 18))[0]):
            reach = min(node, 60) if chance.random() < 0.95 else node
            links.add((node - 1 - chance.randrange(reach), node))
    return sorted(links)


def made_up_graph(count: int, seed: int = 7) -> dict[str, Any]:
    """Return a graph of so many nodes, each with columns; one in three is a job."""
    links = made_up_links(count, seed)
    readers, sources = [0] * count, [0] * count
    for source, target in links:
        readers[source] += 1
        sources[target] += 1
    nodes = [_node(number, sources[number], readers[number]) for number in range(count)]
    edges = [
        {
            "source": nodes[source]["id"],
            "target": nodes[target]["id"],
            "kind": "reads",
            "confidence": "exact" if target % 5 else "inferred",
            "status": "active",
            "first_seen": _MOMENT,
            "last_seen": _MOMENT,
            "first_event": "00" * 32,
            "last_event": "00" * 32,
        }
        for source, target in links
    ]
    return {
        "root": None,
        "nodes": nodes,
        "edges": edges,
        "complete": True,
        "blind_spots": [],
        "shown": count,
        "total": count,
        "as_of": None,
    }


def _node(number: int, upstream: int, downstream: int) -> dict[str, Any]:
    is_job = number % 3 == 1
    columns = [
        {"name": name, "type": "varchar", "tags": [], "marks": ["pii"] if name == "email" else []}
        for name in COLUMNS
    ]
    return {
        "id": f"{'job' if is_job else 'dataset'}:db{number % 12}:schema{number % 40}.node_{number}",
        "kind": "job" if is_job else "dataset",
        "type": "job" if is_job else ("table", "file", "dashboard")[number % 7 % 3],
        "namespace": f"db{number % 12}",
        "name": f"schema{number % 40}.node_{number}",
        "label": f"node_{number}",
        "owners": [f"team-{number % 9}"],
        "tags": [],
        "marks": ["certified"] if number % 50 == 0 else [],
        "aliases": [],
        "columns": [] if is_job else columns,
        "column_total": 0 if is_job else len(columns),
        "upstream_total": upstream,
        "downstream_total": downstream,
        "depth": number // 100,
        "blind_spot_count": 0,
    }
