"""Prints the lineage of every golden case, and whether sqlglot is compiled, as one line of JSON.

Tests run this as a program, because a process can import only one sqlglot.
"""

from __future__ import annotations

import sys

import msgspec
from sqlglot.tokens import SQLGLOTC_INSTALLED
from tests.unit.capture.sql.golden import answer, load_cases

from downriver.capture.sql import SqlLineage


class Answers(msgspec.Struct):
    """The lineage of the golden cases with one kind of sqlglot."""

    compiled: bool
    lineages: dict[str, SqlLineage]


def main() -> None:
    lineages = {name: answer(case) for name, case in load_cases().items()}
    sys.stdout.buffer.write(msgspec.json.encode(Answers(SQLGLOTC_INSTALLED, lineages)))


if __name__ == "__main__":
    main()
