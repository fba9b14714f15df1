"""Quality scores of datasets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver import settings
from downriver.errors import InvalidRequestError
from downriver.govern.drift import DriftLimits, Inspector
from downriver.govern.entity_context import EntityContext
from downriver.govern.quality import ScoreInputs, score_dataset
from downriver.model.ids import DatasetId
from downriver.service.govern import parse_moment
from downriver.service.session import now

if TYPE_CHECKING:
    from downriver.model.trust.quality import QualityScore
    from downriver.service.session import StoreSession


class QualityApi:
    """Quality scores. Call it with a dataset."""

    def __init__(self, session: StoreSession) -> None:
        self._session = session

    def __call__(self, dataset: str, at: str | None = None) -> QualityScore:
        """Return the score of a dataset and the worst one upstream, now or as of a moment."""
        moment = now() if at is None else parse_moment(at, "at")
        with self._session.reading() as view:
            resolved = self._session.resolve(dataset, view)
            if not isinstance(resolved.id, DatasetId):
                raise InvalidRequestError("dataset", f"{resolved.id} is not a dataset")
            stale_days = settings.read_number(settings.STALE_DAYS)
            around = EntityContext(view.graph, view.reader, stale_days)
            inspector = Inspector(view.graph, view.reader, DriftLimits(), moment)
            return score_dataset(resolved, ScoreInputs(view, around, inspector, moment))
