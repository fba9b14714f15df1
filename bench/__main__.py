"""`python -m bench [NAME...] [OPTIONS]`: run benchmarks by name, or a default set of small ones.

`python -m bench --list` lists all of them. Options are passed to each named benchmark:
`python -m bench impact_oracle --show` is `python -m bench.impact_oracle --show`.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from bench.report import Table, print_table, render_markdown

if TYPE_CHECKING:
    from collections.abc import Sequence

# Have `run(quick=...)`, which yields tables. They share `--quick` and `--markdown`.
TABLES = ("ingest", "trace", "durability", "concurrency")
# Have options of their own: `python -m bench.NAME --help`.
PROGRAMS = (
    "sql_oracle", "sql_labelled", "sql_lineage", "silence", "impact_oracle", "impact_fuzz",
    "impact_speed", "commits", "gate_speed", "reads", "mixed", "soak", "spark_capture", "lake",
    "watch", "root_cause", "sdk", "web", "collector",
)  # fmt: skip
# What `make bench` runs: a few minutes on two cores, without Spark and without a network.
DEFAULT: tuple[tuple[str, ...], ...] = (
    *((name, "--quick") for name in TABLES),
    ("sql_oracle", "--quick"),
    ("impact_speed", "--models", "1000", "--changes", "300"),
    ("watch", "--datasets", "30"),
)
_WIDTH = 150  # a pipe has 80 columns, too few for the tables


def describe(name: str) -> str:
    """Return the first sentence of the docstring of a benchmark, without importing it."""
    source = (Path(__file__).parent / f"{name}.py").read_text("utf-8")
    return (ast.get_docstring(ast.parse(source)) or "").partition("\n")[0]


def main() -> int:
    names, options = _split(sys.argv[1:])
    if options == ["--list"] and not names:
        for name in (*TABLES, *PROGRAMS):
            sys.stdout.write(f"{name:<15} {describe(name)}\n")
        return 0
    if unknown := sorted(set(names) - {*TABLES, *PROGRAMS}):
        sys.stderr.write(f"no benchmark named {', '.join(unknown)}; --list lists all\n")
        return 2
    if not names and options not in ([], ["--quick"]):
        sys.stderr.write("options need the name of a benchmark\n")
        return 2
    if names and all(name in TABLES for name in names):
        return _run_tables(names, options)
    return _run_programs([(name, *options) for name in names] or DEFAULT)


def _split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the names at the start, and everything after them.

    `silence`, `commits` and `sql_labelled` take folders and files, which are no names.
    """
    count = next(
        (
            at
            for at, text in enumerate(arguments)
            if text.startswith("-") or (at and _is_path(text))
        ),
        len(arguments),
    )
    return list(arguments[:count]), list(arguments[count:])


def _is_path(text: str) -> bool:
    return text not in {*TABLES, *PROGRAMS} and Path(text).exists()


def _run_programs(commands: Sequence[tuple[str, ...]]) -> int:
    """Run each benchmark in a process of its own. Return the first exit code that is not 0."""
    failed = 0
    for number, (name, *options) in enumerate(commands, 1):
        started = time.monotonic()
        sys.stderr.write(f"[{number}/{len(commands)}] {name} {' '.join(options)}\n")
        module = ["bench", name] if name in TABLES else [f"bench.{name}"]
        code = subprocess.run([sys.executable, "-m", *module, *options], check=False).returncode
        sys.stderr.write(f"    {time.monotonic() - started:.0f} s, exit code {code}\n")
        failed = failed or code
    return failed


def _run_tables(names: Sequence[str], options: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="use less data: about two minutes")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables here too")
    arguments = parser.parse_args(options)
    console = Console(width=max(Console().width, _WIDTH))
    tables: list[Table] = []
    for name in names:
        for table in importlib.import_module(f"bench.{name}").run(quick=arguments.quick):
            print_table(table, console)
            tables.append(table)
    if arguments.markdown:
        arguments.markdown.write_text(render_markdown(tables), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
