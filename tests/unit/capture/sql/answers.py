"""Prints the whole lineage of every golden case, and whether sqlglot is compiled: a line of JSON.

Run by tests as a program, for a process has one sqlglot from its beginning to its end.
"""

from __future__ import annotations

import sys

import msgspec
from sqlglot.tokens import SQLGLOTC_INSTALLED
from tests.unit.capture.sql.golden import answer, load_cases

from downriver.capture.sql import SqlLineage


class Answers(msgspec.Struct):
    """What one kind of sqlglot makes of the golden cases."""

    compiled: bool
    lineages: dict[str, SqlLineage]


def main() -> None:
    lineages = {name: answer(case) for name, case in load_cases().items()}
    sys.stdout.buffer.write(msgspec.json.encode(Answers(SQLGLOTC_INSTALLED, lineages)))


if __name__ == "__main__":
    main()
