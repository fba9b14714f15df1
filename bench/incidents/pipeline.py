"""A pipeline of SQL jobs, and a fault in its data or code."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NamedTuple

import duckdb

Load = Callable[[duckdb.DuckDBPyConnection, random.Random, int], None]


class Step(NamedTuple):
    """A job: its name, the table that it writes, and its SQL (none for a load)."""

    job: str
    table: str
    select: str = ""


class Pipeline(NamedTuple):
    """A pipeline: loads and transformations in order, and the table where a problem is noticed."""

    name: str
    steps: tuple[Step, ...]
    load: Load
    symptoms: tuple[str, ...]


class Fault(NamedTuple):
    """A fault: its kind, the table it is injected into or the table of its job, and how."""

    pipeline: str
    kind: str
    table: str
    detail: str  # SQL that changes the data, or `old -> new` in the SQL of the job
    symptom: str
    harmless: str  # a table that gets a new column the same night
