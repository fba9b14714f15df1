"""`python -m bench [ingest] [trace] [durability] [concurrency] [--quick] [--markdown FILE]`.

`python -m bench silence FOLDER...` is `python -m bench.silence FOLDER...`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from rich.console import Console

from bench import concurrency, durability, ingest, silence, trace
from bench.report import Table, print_table, render_markdown

if TYPE_CHECKING:
    from collections.abc import Iterator


class Benchmark(Protocol):
    """Something to run."""

    def __call__(self, *, quick: bool) -> Iterator[Table]:
        """Measure, and yield each table as it is known."""


BENCHMARKS: dict[str, Benchmark] = {
    "ingest": ingest.run,
    "trace": trace.run,
    "durability": durability.run,
    "concurrency": concurrency.run,
}


_WIDEST = 150  # rather broken by the terminal than squeezed into a pipe's 80


def main() -> None:
    if sys.argv[1:2] == ["silence"]:
        silence.run(sys.argv[2:])
        return
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of: {', '.join(BENCHMARKS)}")
    parser.add_argument("--quick", action="store_true", help="smaller, in two minutes")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables here too")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - set(BENCHMARKS)
    if unknown:
        parser.error(f"no benchmark called {', '.join(sorted(unknown))}")
    console = Console(width=max(Console().width, _WIDEST))
    tables: list[Table] = []
    for name in arguments.names or BENCHMARKS:
        for table in BENCHMARKS[name](quick=arguments.quick):
            print_table(table, console)
            tables.append(table)
    if arguments.markdown:
        arguments.markdown.write_text(render_markdown(tables), "utf-8")


if __name__ == "__main__":
    main()
