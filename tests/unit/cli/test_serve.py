"""The store of a server can be opened by its worker processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from downriver.cli.store import _served_location
from downriver.store import MEMORY


@pytest.mark.parametrize(("given", "setting"), [(MEMORY, ""), (None, MEMORY)])
def test_a_store_in_memory_is_served_from_a_folder_that_is_removed(
    given: str | None, setting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOWNRIVER_STORE", setting)
    with _served_location(given) as location:
        assert location is not None
        folder = Path(location)
        assert folder.is_dir()
    assert not folder.exists()


def test_another_store_is_served_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOWNRIVER_STORE", MEMORY)
    with _served_location("here") as location:
        assert location == "here"
