"""What the lake's tests share."""

from __future__ import annotations

import gc
import warnings
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _no_sockets_left() -> Iterator[None]:
    """PySpark leaves the sockets it fetched rows through to the collector; not to the next test."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
