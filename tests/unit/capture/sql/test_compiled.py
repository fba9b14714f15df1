"""The results are the same with and without `sqlglot[c]`.

The compiled modules are in sqlglot's own folder, next to its Python files. So the test uses two
copies of sqlglot: one with the compiled modules, one without.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import msgspec
import pytest
from tests.unit.capture.sql.answers import Answers

import downriver

ROOT = Path(__file__).parents[4]
COMPILED = ("*.so", "*.pyd")
INSTALL_SECONDS = 300


@pytest.fixture(scope="module")
def compiled(pytestconfig: pytest.Config) -> Path:
    """A folder with the installed version of sqlglot, compiled; fetched once and then kept."""
    wanted = version("sqlglot")
    cache = pytestconfig.cache
    assert cache is not None
    folder = cache.mkdir("sqlglotc") / f"{wanted}-{sys.implementation.cache_tag}"
    if not folder.exists():
        _install(folder, [f"sqlglot=={wanted}", f"sqlglotc=={wanted}"])
    return folder


def _install(folder: Path, packages: list[str]) -> None:
    """Install into a folder that exists only when it is complete. In CI the test is not skipped."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    options = ["--no-deps", "--only-binary=:all:"]
    with tempfile.TemporaryDirectory(dir=folder.parent) as room:
        target = Path(room) / "installed"
        done = subprocess.run(
            [*command, *options, "--target", str(target), *packages],
            capture_output=True,
            text=True,
            check=False,
            timeout=INSTALL_SECONDS,
        )
        if done.returncode == 0:
            target.rename(folder)
            return
    reason = f"compiled sqlglot cannot be installed: {done.stderr.strip()[-500:]}"
    if os.environ.get("CI") == "true":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="module")
def pure(compiled: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the same sqlglot in Python alone."""
    folder = tmp_path_factory.mktemp("sqlglot")
    ignored = shutil.ignore_patterns(*COMPILED, "__pycache__")
    shutil.copytree(compiled / "sqlglot", folder / "sqlglot", ignore=ignored)
    return folder


def _start(folder: Path) -> subprocess.Popen[bytes]:
    places = [folder, ROOT, Path(downriver.__file__).parents[1]]
    return subprocess.Popen(
        [sys.executable, "-m", "tests.unit.capture.sql.answers"],
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, places))},
    )


def _answers(running: subprocess.Popen[bytes]) -> Answers:
    output, _ = running.communicate()
    assert running.returncode == 0
    return msgspec.json.decode(output, type=Answers)


def test_answers_are_the_same_whether_sqlglot_is_compiled_or_not(
    compiled: Path, pure: Path
) -> None:
    with _start(compiled) as first, _start(pure) as second:
        fast, slow = _answers(first), _answers(second)
    assert (fast.compiled, slow.compiled) == (True, False)
    assert len(slow.lineages) > 250
    different = [name for name, found in slow.lineages.items() if fast.lineages[name] != found]
    assert not different
