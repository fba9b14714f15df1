"""Fixtures of all tests."""

from __future__ import annotations

import os
import shutil
from contextlib import ExitStack
from importlib.metadata import version
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest
from hypothesis import settings
from psycopg import sql
from xdist.scheduler import LoadFileScheduling

from downriver.capture.spark.local_session import spark_environment
from tests.postgres import PostgresUnavailableError, running_postgres
from tests.spark import QUICK, QUICK_JAVA, SparkUnavailableError, running_spark

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


# Examples of properties have no time limit, because a loaded machine is slow.
settings.register_profile("downriver", deadline=None)
settings.load_profile("downriver")

# Files with slow, independent tests: each test may run in any process.
_APART = (
    "tests/test_docs.py",
    "tests/e2e/test_lake_elsewhere.py",
    "tests/unit/capture/spark/test_golden_elsewhere.py",
)

NO_POSTGRES, NO_SPARK = "without PostgreSQL", "without Spark"
NO_MERMAID, NO_BROWSER = "without Mermaid", "without a browser"


class _Files(LoadFileScheduling):  # type: ignore[misc]
    """Runs the tests of one file in one process, because they share fixtures."""

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return nodeid if file in _APART else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> _Files:
    """Distribute files over processes."""
    return _Files(config, log)


def pytest_xdist_auto_num_workers() -> int:
    """Use one process more than there are cores, because tests often wait for servers and Java."""
    return (os.cpu_count() or 1) + 1


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run slow tests first, so that all processes end at about the same time."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.fixture(scope="session", autouse=True)
def quick_spark(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Set a Java and settings for small data for every Spark, also in child processes.

    The Java is that of the machine, or that of the wheel.
    """
    os.environ.setdefault("SPARK_SUBMIT_OPTS", QUICK_JAVA)
    if "SPARK_CONF_DIR" not in os.environ:
        settings = tmp_path_factory.mktemp("spark-conf")
        lines = [f"{key} {value}\n" for key, value in QUICK.items()]
        (settings / "spark-defaults.conf").write_text("".join(lines), "utf-8")
        os.environ["SPARK_CONF_DIR"] = str(settings)
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        folder = tmp_path_factory.mktemp("java")
        os.environ.update(spark_environment(version("pyspark"), folder))


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """The URL of a real PostgreSQL server.

    Without a server its tests are skipped; in CI they fail.
    """
    with ExitStack() as stack:
        try:
            url = stack.enter_context(running_postgres(fsync=False))
        except PostgresUnavailableError as exc:
            if os.environ.get("CI") == "true":
                pytest.fail(str(exc), pytrace=False)
            pytest.skip(f"{NO_POSTGRES}: {exc}")
        yield url


@pytest.fixture
def postgres_database(postgres_url: str) -> Iterator[str]:
    """The URL of an empty database, dropped after the test."""
    name = f"test_{uuid4().hex}"
    _administer(postgres_url, sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    yield urlsplit(postgres_url)._replace(path=f"/{name}").geturl()
    _administer(postgres_url, sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def _administer(url: str, statement: sql.Composed) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement)


@pytest.fixture(scope="session")
def spark_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the tests' Spark keeps its warehouse and everything else."""
    return tmp_path_factory.mktemp("spark").resolve()


@pytest.fixture(scope="session")
def spark(spark_folder: Path) -> Iterator[Any]:
    """One Spark session for the whole run. Without Java, its tests are skipped; in CI they fail."""
    with ExitStack() as stack:
        try:
            session = stack.enter_context(running_spark(spark_folder))
        except SparkUnavailableError as exc:
            if os.environ.get("CI") == "true":
                pytest.fail(str(exc), pytrace=False)
            pytest.skip(f"{NO_SPARK}: {exc}")
        yield session


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print a warning if the tests of PostgreSQL, Spark, Mermaid or the browser did not run."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = {str(report.longrepr[2]) for report in skipped}
    for reason in sorted(reasons):
        if any(part in reason for part in (NO_POSTGRES, NO_SPARK, NO_MERMAID, NO_BROWSER)):
            terminalreporter.section("tests DID NOT RUN", red=True, bold=True)
            terminalreporter.line(reason, red=True)
