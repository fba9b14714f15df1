"""A Kafka broker from Maven Central, started for tests: one node that is its own controller."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from bench.maven import KAFKA, JarUnavailableError, fetch_program

from downriver.capture.spark.local_session import find_java
from tests.server import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

_SETTINGS = """
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
controller.listener.names=CONTROLLER
log.dirs={home}/data
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
group.initial.rebalance.delay.ms=0
group.coordinator.append.linger.ms=0
"""
_CLUSTER = "AAAAAAAAAAAAAAAAAAAAAQ"


@contextmanager
def running_kafka(home: Path) -> Iterator[str]:
    """Start a broker without topics and yield its address."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    home.mkdir(parents=True)
    port, controller = free_port(), free_port()
    (home / "server.properties").write_text(
        _SETTINGS.format(port=port, controller=controller, home=home)
    )
    with (home / "output").open("wb") as output:
        format_options = ("format", "-t", _CLUSTER, "-c", "server.properties", "--standalone")
        done = subprocess.run(
            [*_java(), "kafka.tools.StorageTool", *format_options],
            cwd=home, stdout=output, stderr=subprocess.STDOUT, check=False,
        )  # fmt: skip
        assert done.returncode == 0, (home / "output").read_text()[-2000:]
        process = subprocess.Popen(
            [*_java(), "kafka.Kafka", "server.properties"],
            cwd=home, stdout=output, stderr=subprocess.STDOUT,
        )  # fmt: skip
    address = f"127.0.0.1:{port}"
    try:
        for _ in range(240):
            if process.poll() is not None:
                break
            try:
                client = AdminClient({"bootstrap.servers": address, "log_level": 0})
                client.list_topics(timeout=1)
                break
            except KafkaException:
                time.sleep(0.2)
        assert process.poll() is None, (home / "output").read_text()[-2000:]
        yield address
    finally:
        process.terminate()
        process.wait(60)


def _java() -> list[str]:
    try:
        jars = fetch_program(KAFKA)
    except JarUnavailableError as exc:
        if os.environ.get("CI") == "true":
            pytest.fail(str(exc), pytrace=False)
        pytest.skip(str(exc))
    java = str(find_java(importlib.metadata.version("pyspark")))
    return [java, "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*"]
