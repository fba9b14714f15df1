"""Shared by the scripts of all peers: reads statements from stdin, prints CPU milliseconds.

Run by the Python of the peer's own virtualenv, so it may import nothing but the standard library.
"""

from __future__ import annotations

import json
import statistics
import sys
import time


def main(prepare) -> None:  # type: ignore[no-untyped-def]
    """Measure `prepare(schema)(sql)` for every statement; failures are printed."""
    task = json.load(sys.stdin)
    read = prepare(task["schema"])
    answer = {}
    for number, (name, sql) in enumerate(task["statements"].items()):
        try:
            read(sql)  # warm: imports and dialects are loaded
        except Exception as exc:  # noqa: BLE001 — whatever a peer raises is its answer
            answer[name] = {"error": f"{type(exc).__name__}: {exc}"[:200]}
            continue
        times = []
        for round_ in range(task["rounds"]):
            unique = f"{sql}\n-- {number}.{round_}"  # so that no cache has the result
            start = time.process_time()
            read(unique)
            times.append((time.process_time() - start) * 1000)
        answer[name] = {"ms": statistics.median(times)}
    json.dump(answer, sys.stdout)
