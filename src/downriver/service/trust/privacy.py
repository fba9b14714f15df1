"""Reports about personal data, and access policies that follow from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from downriver import settings
from downriver.errors import InvalidRequestError
from downriver.govern.entity_context import EntityContext
from downriver.govern.privacy import render_ranger, render_sql, report_privacy
from downriver.model.governance import PII_TAG
from downriver.model.ids import ColumnId

if TYPE_CHECKING:
    from downriver.govern.privacy import SqlDialect
    from downriver.model.trust.privacy import PrivacyReport
    from downriver.service.session import StoreSession


class PrivacyApi:
    """Reports what personal data reaches. Call it with the column where the data enters."""

    def __init__(self, session: StoreSession) -> None:
        self._session = session

    def __call__(self, field: str) -> PrivacyReport:
        """Return every dataset, column, model and dashboard that a personal column reaches."""
        with self._session.reading() as view:
            resolved = self._session.resolve(field, view)
            if not isinstance(resolved.id, ColumnId):
                raise InvalidRequestError(
                    "field", f"{resolved.id} is not a column; write TABLE.COLUMN"
                )
            stale_days = settings.read_number(settings.STALE_DAYS)
            around = EntityContext(view.graph, view.reader, stale_days)
            return report_privacy(view, resolved, around)

    def ranger(
        self, report: PrivacyReport, *, tag: str = PII_TAG, service: str = "tags"
    ) -> list[dict[str, Any]]:
        """Return Apache Ranger tag policies for a report, as its REST API takes them."""
        return render_ranger(report, tag, service)

    def sql(self, report: PrivacyReport, dialect: SqlDialect) -> str:
        """Return SQL statements that mask the field, or grant the other columns only."""
        with self._session.reading() as view:
            columns = {
                each.dataset: [
                    column.path
                    for column in view.reader.facets.schema(
                        self._session.resolve(each.dataset, view).node
                    )
                    if "." not in column.path
                ]
                for each in report.datasets
                if each.columns
            }
        return render_sql(report, dialect, columns)
