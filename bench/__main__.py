"""`python -m bench [ingest] [trace] [durability] [concurrency] [--quick] [--markdown FILE]`.

The other benchmarks are modules of their own: `python -m bench.sql_oracle`, `bench.impact_oracle`,
`bench.sql_lineage`, `bench.spark_capture`, `bench.sdk`, `bench.lake`, `bench.watch` and others.

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
    """Measures one thing and yields tables."""

    def __call__(self, *, quick: bool) -> Iterator[Table]:
        """Measure, and yield each table as it is known."""


BENCHMARKS: dict[str, Benchmark] = {
    "ingest": ingest.run,
    "trace": trace.run,
    "durability": durability.run,
    "concurrency": concurrency.run,
}


_WIDTH = 150  # a pipe has 80 columns, too few for the tables


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
    console = Console(width=max(Console().width, _WIDTH))
    tables: list[Table] = []
    for name in arguments.names or BENCHMARKS:
        for table in BENCHMARKS[name](quick=arguments.quick):
            print_table(table, console)
            tables.append(table)
    if arguments.markdown:
        arguments.markdown.write_text(render_markdown(tables), "utf-8")


if __name__ == "__main__":
    main()
