"""The rows of dbt unit tests: YAML, CSV, SQL, or a fixture in another file."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from downriver.capture.code import CodeJob, ColumnReference
from downriver.capture.code.dbt_resources import entries, text
from downriver.capture.scan.located_text import LocatedText
from downriver.capture.sql import read_rendered, render_sql
from downriver.openlineage.facets.custom import BlindSpotEntry

if TYPE_CHECKING:
    from collections.abc import Callable

    from downriver.capture.scan.dbt.project import DbtProject
    from downriver.capture.scan.repository import Repository
    from downriver.model.ids import DatasetId

_FIXTURES = "fixtures"


def read_fixtures(root: str, folders: list[str], repository: Repository) -> dict[str, str]:
    """Return the fixtures of a project by name: queries, and the headers of CSV files."""
    fixtures: dict[str, str] = {}
    for folder in folders:
        inside = (PurePosixPath(root) / folder / _FIXTURES).as_posix()
        for suffix in (".csv", ".sql"):
            for path in repository.files_in(inside, suffix):
                source = (repository.read(path) or "").strip()
                fixtures[PurePosixPath(path).stem] = (
                    source.partition("\n")[0] if suffix == ".csv" else source
                )
    return fixtures


class UnitTestRows:
    """Adds the columns that the rows of a unit test name to its job."""

    def __init__(
        self, job: CodeJob, project: DbtProject, dataset_for: Callable[[str], DatasetId]
    ) -> None:
        self._job = job
        self._project = project
        self._dataset_for = dataset_for
        self._known: set[str] = set()

    def add(self, dataset: DatasetId, block: dict[str, Any]) -> None:
        """Add the rows that a test gives or expects for a table."""
        rows, fixture = block.get("rows"), text(block.get("fixture"))
        for row in entries(rows):
            for column in row:
                if isinstance(column, LocatedText):
                    self._reference(dataset, column)
        kind = text(block.get("format"))
        if fixture:
            place = block["fixture"]
            line = place.line if isinstance(place, LocatedText) else self._job.line
            content = self._project.fixtures.get(fixture)
            if content is None:
                self._unread(f"the fixture {fixture} is not in a test folder", line)
            elif kind == "sql":
                self._query(dataset, LocatedText(content, line), in_yaml=False)
            else:
                self._header(dataset, LocatedText(content, line))
        elif isinstance(rows, LocatedText) and kind == "csv":
            self._header(dataset, LocatedText(rows.strip(), rows.line + 1))
        elif isinstance(rows, LocatedText):
            self._query(dataset, rows, in_yaml=True)

    def _header(self, dataset: DatasetId, rows: LocatedText) -> None:
        for column in rows.partition("\n")[0].split(","):
            name = column.strip().strip('"')
            if name:
                self._reference(dataset, LocatedText(name, rows.line))

    def _query(self, dataset: DatasetId, rows: LocatedText, *, in_yaml: bool) -> None:
        """Add the output columns of a query, and the tables that it reads."""
        rendered = render_sql(rows, self._project.template(""))
        lineage = read_rendered(rendered, dialect=self._project.dialect)
        read = [self._dataset_for(table) for table in lineage.inputs]
        for table in read:
            self._job.add_input(table)
        columns = lineage.statements[-1].columns if lineage.statements else []
        lines = rows.casefold().splitlines()
        for column in columns:
            if column == "*":
                continue
            at = next((at for at, line in enumerate(lines) if column.casefold() in line), 0)
            line = rows.line + 1 + at if in_yaml else rows.line
            self._reference(dataset, LocatedText(column, line))
        if lineage.blind_spots or not columns or ("*" in columns and read != [dataset]):
            self._unread("not all columns of the query of a unit test are known", rows.line)

    def _reference(self, dataset: DatasetId, column: LocatedText) -> None:
        self._job.add_reference(
            ColumnReference(
                dataset=dataset,
                field=str(column),
                line=column.line,
                clause="test",
                text=f"unit test: {column}",
            )
        )

    def _unread(self, message: str, line: int) -> None:
        if message not in self._known:  # once for a test
            self._known.add(message)
            self._job.add_blind_spot(BlindSpotEntry("not_read", message, line))
