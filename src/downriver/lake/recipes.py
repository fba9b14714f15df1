"""How a table is made: from which others, by which transform."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

    from downriver.lake.tables import Table


class Recipe(NamedTuple):
    """A table and the pure transform that makes it of others, named `layer.table`."""

    table: Table
    inputs: tuple[str, ...]
    make: Callable[..., DataFrame]
