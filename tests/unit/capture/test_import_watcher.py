"""A watched import behaves as any other import, also when what watches it fails."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING

from downriver.capture.import_watcher import ImportWatcher

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_watched_module_is_imported_and_may_read_its_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "watched_package"
    package.mkdir()
    (package / "data.txt").write_text("7")
    code = "import pkgutil\nVALUE = int(pkgutil.get_data(__name__, 'data.txt'))\n"
    (package / "__init__.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    seen: list[str] = []

    def fail(name: str) -> None:
        seen.append(name)
        raise AttributeError(name)

    watcher = ImportWatcher(["watched_package"], fail)
    watcher.start()
    try:
        assert importlib.import_module("watched_package").VALUE == 7
    finally:
        watcher.stop()
        sys.modules.pop("watched_package", None)
    assert seen == ["watched_package"]
