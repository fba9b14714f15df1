"""All data flows that are followed in the driver of one Spark application."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from downriver.capture.spark.driver.frames import DriverFrames
from downriver.capture.spark.driver.ml_models import SparkModels
from downriver.capture.spark.driver.patches import follow
from downriver.capture.spark.driver.rdds import RddActions
from downriver.openlineage.naming import dataset_at

if TYPE_CHECKING:
    from downriver.capture.frame_origins import FrameRegistry
    from downriver.capture.spark.action_reader import ActionReader
    from downriver.capture.spark.publisher import ActionPublisher
    from downriver.model.ids import DatasetId


class DriverFollower:
    """Rows, RDDs and models of an application, until `leave` is called."""

    def __init__(
        self,
        context: Any,
        reader: ActionReader,
        frames: FrameRegistry,
        capture: ActionPublisher,
    ) -> None:
        self._context = context
        self.rows = DriverFrames(reader, frames, lambda: capture.known)
        self.rdds = RddActions(capture, self._name_path)
        self.models = SparkModels(capture, reader, self.rows.plan_origins, self._name_path)
        self.leave = follow(context, self)

    def _name_path(self, path: str) -> DatasetId:
        """Return the dataset of a path, as Hadoop completes it."""
        given = self._context._jvm.org.apache.hadoop.fs.Path(path)
        system = given.getFileSystem(self._context._jsc.hadoopConfiguration())
        return dataset_at(str(system.makeQualified(given).toString()))
