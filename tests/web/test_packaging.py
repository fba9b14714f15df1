"""The UI's lock file is complete for every platform, and a wheel contains the built UI."""

from __future__ import annotations

import json
import re
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


@pytest.mark.slow
def test_the_first_load_of_the_largest_page_is_small(built_ui: None) -> None:
    assets = ROOT / "src" / "downriver" / "http" / "web" / "assets"
    entry = (assets.parent / "index.html").read_text(encoding="utf-8")
    loaded = set(re.findall(r'/assets/([^"]+)', entry))
    loaded |= {file.name for file in assets.glob("l[ai]*.[cj]s*") if file.suffix != ".gz"}
    assert any(name.startswith("lineage_canvas") for name in loaded)
    compressed = [assets / f"{name}.gz" for name in loaded]
    sizes = [file.stat().st_size if file.exists() else 1_000 for file in compressed]
    assert 100_000 < sum(sizes) < 250_000
