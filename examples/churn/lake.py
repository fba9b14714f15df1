"""The paths of the pipeline's data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Lake:
    """The folders of the pipeline, and the database of the billing system."""

    root: Path
    jdbc_driver: str = "org.apache.derby.jdbc.EmbeddedDriver"  # ships with Spark

    def raw(self, name: str) -> str:
        """Return the path of a raw source."""
        return str(self.root / "raw" / name)

    def clean(self, name: str) -> str:
        """Return the path of a cleaned source."""
        return str(self.root / "clean" / name)

    def table(self, name: str) -> str:
        """Return the path of a result table."""
        return str(self.root / name)

    @property
    def model(self) -> Path:
        """The file of the trained model."""
        return self.root / "models" / "churn.joblib"

    @property
    def billing_url(self) -> str:
        """The database of the billing system."""
        return f"jdbc:derby:{self.root / 'billing'};create=true"
