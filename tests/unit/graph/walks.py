"""Walks in Python and compiled ones, which must find the same."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from downriver.graph import swift

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module", params=["python", "compiled"], autouse=True)
def walks(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run every test of a module with both; modules import it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(swift, "_loaded", [])
        if request.param == "compiled" and not swift.load():
            missing = "numba is not installed, so compiled walks are not tested"
            pytest.fail(missing) if os.environ.get("CI") else pytest.skip(missing)
        yield
