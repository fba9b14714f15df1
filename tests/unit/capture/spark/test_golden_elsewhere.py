"""The golden Spark jobs in other kinds of sessions, each in a separate process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import requires
from pathlib import Path
from typing import Any, NoReturn

import pytest
from bench.downloads import PackagesUnavailableError, python_with
from bench.maven import DELTA as DELTA_JARS
from bench.maven import ICEBERG as ICEBERG_JAR
from bench.maven import SPARK_KAFKA, JarUnavailableError, fetch_jar
from tests.spark import SparkUnavailableError, check_java
from tests.spark_golden import (
    CONNECT,
    CONNECT_DIFFERENCES,
    DELTA,
    HIVE,
    HUNG,
    ICEBERG,
    KAFKA,
    PLAIN,
    load_cases,
    show_difference,
)

ROOT = Path(__file__).parents[4]
CASES = load_cases()


@pytest.mark.slow
@pytest.mark.parametrize("version", ["3.5", "4.3"])
def test_the_same_on_other_versions_of_spark(version: str) -> None:
    _needs_java()
    found = _run(_python_with_spark(version), PLAIN)
    assert found["spark"].startswith(version)
    assert len(found["cases"]) == sum(case.runs_on(version) for case in CASES.values())
    _check(found)


@pytest.mark.slow
def test_delta() -> None:
    _needs_java()
    try:
        jars = [fetch_jar(jar) for jar in DELTA_JARS]
    except JarUnavailableError as exc:
        _missing(str(exc))
    found = _run(sys.executable, DELTA, "--jars", ",".join(map(str, jars)))
    assert len(found["cases"]) == len(load_cases(DELTA))
    _check(found)


@pytest.mark.slow
def test_iceberg() -> None:
    _needs_java()
    try:
        jar = fetch_jar(ICEBERG_JAR)
    except JarUnavailableError as exc:
        _missing(str(exc))
    found = _run(sys.executable, ICEBERG, "--jars", str(jar))
    assert len(found["cases"]) == len(load_cases(ICEBERG))
    _check(found)


@pytest.mark.slow
def test_topics_of_kafka() -> None:
    _needs_java()
    try:
        jars = [fetch_jar(jar) for jar in SPARK_KAFKA]
    except JarUnavailableError as exc:
        _missing(str(exc))
    found = _run(sys.executable, KAFKA, "--jars", ",".join(map(str, jars)))
    assert len(found["cases"]) == len(load_cases(KAFKA))
    _check(found)


@pytest.mark.slow
def test_tables_of_hive() -> None:
    _needs_java()
    found = _run(sys.executable, HIVE)
    assert len(found["cases"]) == len(load_cases(HIVE))
    _check(found)


def test_a_case_that_hangs_ends_with_its_stack() -> None:
    code = (
        "import time; from tests.spark_golden import Watchdog\n"
        "def a_call_without_end(): time.sleep(600)\n"
        "with Watchdog(0.5): a_call_without_end()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == HUNG
    assert "the start of the session did not end within 0.5 seconds" in done.stderr
    assert "a_call_without_end" in done.stderr


@pytest.mark.slow
def test_spark_connect() -> None:
    _needs_java()
    found = _run(sys.executable, CONNECT)
    differences = {
        name: text for name, both in found["cases"].items() if (text := show_difference(name, both))
    }
    unexpected = {
        name: text for name, text in differences.items() if name not in CONNECT_DIFFERENCES
    }
    assert not unexpected, "\n".join(unexpected.values())
    assert len(found["cases"]) - len(differences) >= 130


def _check(found: dict[str, Any]) -> None:
    differences = [show_difference(*item) for item in found["cases"].items()]
    assert not any(differences), "\n".join(filter(None, differences))


def _run(python: str | Path, session: str, *options: str) -> dict[str, Any]:
    done = subprocess.run(
        [python, "-m", "tests.spark_golden", "--json", "--session", session, *options],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONWARNINGS": "default"},
        capture_output=True,
        text=True,
        timeout=1800,  # a case that hangs ends the process long before
        check=False,
    )
    assert done.returncode != HUNG, f"{done.stderr[-20_000:]}\n{done.stdout[-20_000:]}"
    assert done.stdout, done.stderr[-5000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _python_with_spark(version: str) -> Path:
    """Return the Python of a virtual environment with that PySpark and what Downriver needs."""
    needed = [name for name in requires("downriver") or () if "extra ==" not in name]
    try:
        return python_with(
            f"pyspark~={version}.0", "pandas>=2.2,<3", "pyarrow", "pyyaml", *sorted(needed)
        )
    except PackagesUnavailableError as exc:
        _missing(str(exc))


def _needs_java() -> None:
    try:
        check_java()
    except SparkUnavailableError as exc:
        _missing(str(exc))


def _missing(reason: str) -> NoReturn:
    if os.environ.get("CI") == "true":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)
