"""Half a minute of the soak that `make soak` runs for ten."""

from __future__ import annotations

import sys

import pytest
from bench.soak import soak


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the memory of the server from /proc")
def test_a_server_under_load_keeps_its_memory_and_every_event() -> None:
    result = soak(25, calibration=5)
    assert result.errors == []
    assert result.lost == 0
    assert result.acknowledged > 0
    assert result.is_flat, result.memory_mb
