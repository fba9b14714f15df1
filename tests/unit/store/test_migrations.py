"""Both stores go through the same migrations, in the same order."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

MIGRATIONS = Path(__file__).parents[3] / "src" / "downriver" / "store" / "migrations"
DIALECTS = ("sqlite", "postgres")
FILE_NAME = re.compile(r"(?P<number>\d{4})_[a-z][a-z0-9_]*\.sql")


def check_numbering(names: list[str]) -> list[str]:
    """Name migrations NNNN_what.sql, counting up from 0001 with none skipped or repeated."""
    violations = []
    numbers = []
    for name in sorted(names):
        if match := FILE_NAME.fullmatch(name):
            numbers.append(int(match["number"]))
        else:
            violations.append(f"{name}: not of the form 0001_what.sql")
    expected = list(range(1, max(len(numbers), 1) + 1))
    if numbers != expected:
        violations.append(f"numbered {numbers}, expected {expected}")
    return violations


def list_migrations(dialect: str) -> list[str]:
    return sorted(path.name for path in (MIGRATIONS / dialect).iterdir())


@pytest.mark.parametrize("dialect", DIALECTS)
def test_migrations_count_up_from_one_without_gaps(dialect):
    violations = check_numbering(list_migrations(dialect))
    assert not violations, "\n".join([f"{dialect}: {check_numbering.__doc__}", *violations])


def test_both_dialects_have_the_same_migrations():
    sqlite, postgres = (set(list_migrations(dialect)) for dialect in DIALECTS)
    assert sqlite == postgres, (
        "Write each migration for both dialects, under one name. "
        f"In one only: {sorted(sqlite ^ postgres)}"
    )


@pytest.mark.parametrize(
    "names",
    [
        [],
        ["0002_log.sql"],
        ["0001_log.sql", "0003_catalog.sql"],
        ["0001_log.sql", "0001_catalog.sql"],
        ["0001_log.sql", "2_catalog.sql"],
        ["0001_log.sql", "notes.txt"],
    ],
    ids=["none", "late start", "gap", "duplicate", "short number", "stray file"],
)
def test_bad_numbering_is_found(names):
    assert check_numbering(names)


def test_good_numbering_is_accepted():
    assert check_numbering(["0002_catalog.sql", "0001_log.sql"]) == []
