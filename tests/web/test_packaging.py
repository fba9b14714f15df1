"""The UI's lock file is complete for every platform, and a wheel contains the built UI."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def locked() -> dict[str, Any]:
    packages: dict[str, Any] = json.loads((ROOT / "web" / "package-lock.json").read_text())[
        "packages"
    ]
    return packages


def test_the_lock_file_lists_the_packages_of_every_platform(locked: dict[str, Any]) -> None:
    names = {path.rpartition("node_modules/")[2] for path in locked}
    wanted = {
        name for package in locked.values() for name in package.get("optionalDependencies", {})
    }
    assert wanted - names == set()
    assert any("linux-arm64" in name for name in names)


def test_the_lock_file_has_digests_and_no_addresses(locked: dict[str, Any]) -> None:
    for path, package in locked.items():
        assert "resolved" not in package, path
        assert path == "" or "integrity" in package, path


@pytest.mark.slow
def test_a_wheel_contains_the_built_ui(built_ui: None, tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir"]
    done = subprocess.run(
        [*pip, str(tmp_path), str(ROOT)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("downriver-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "downriver/http/web/index.html" in names
    assert any(name.startswith("downriver/http/web/assets/") for name in names)
    assert not any("node_modules" in name for name in names)
