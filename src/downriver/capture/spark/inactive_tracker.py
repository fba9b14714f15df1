"""A tracker without effect. It is used when a session cannot be captured, so that the job runs."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from downriver.capture.frame_origins import FrameRegistry
from downriver.capture.trained_models import TrackedModel, feature_names

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager


class UncapturedSession:
    """A session that captures nothing, with the methods of a tracked session."""

    is_open = False

    def __init__(self, spark: Any, reason: str) -> None:
        self.spark = spark
        self.reason = reason
        self.on_end: Callable[[str], None] | None = None

    def block(self, job: str) -> AbstractContextManager[None]:
        """Run a block of code."""
        del job
        return nullcontext()

    def model(
        self,
        name: str,
        estimator: Any = None,
        *,
        features: Any,
        target: Any = None,
        path: str | None = None,
        metrics: Mapping[str, float] | None = None,
    ) -> TrackedModel:
        """Return a model that is not registered."""
        del target, path, metrics
        return TrackedModel(name, feature_names(estimator, features), FrameRegistry())

    def wrote(self, frame: Any, path: str) -> None:
        """Register nothing."""

    def flush(self, timeout: float = 0.0) -> bool:
        """Return at once: there are no events."""
        del timeout
        return True

    def close(self, error: str = "") -> None:
        """Do nothing."""
