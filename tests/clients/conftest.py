"""Real clients of other projects, each in a virtual environment of its own, and a server for them.

Without the packages the tests are skipped; in CI they fail.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pytest
from bench.downloads import PackagesUnavailableError, python_with
from tests.server import running_server

if TYPE_CHECKING:
    from collections.abc import Iterator

ClientPython: TypeAlias = Callable[..., Path]


@pytest.fixture(scope="session")
def client_python() -> ClientPython:
    """A function that returns the Python of an environment with these packages."""

    def find(*requirements: str) -> Path:
        try:
            return python_with(*requirements)
        except PackagesUnavailableError as exc:
            if os.environ.get("CI") == "true":
                pytest.fail(str(exc), pytrace=False)
            pytest.skip(str(exc))

    return find


@pytest.fixture(scope="module")
def server_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of an empty store, in a process of its own, for the tests of one file."""
    with running_server(tmp_path_factory.mktemp("clients") / "lineage.db") as url:
        yield url
