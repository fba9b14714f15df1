"""Rules that the lineage itself must satisfy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.govern.checks import CheckConfig, check_lineage
from downriver.govern.checks.config import check_rule_names

if TYPE_CHECKING:
    from collections.abc import Collection

    from downriver.model.trust.checks import LineageChecks
    from downriver.service.session import StoreSession


class CheckApi:
    """Checks the lineage of the whole store. Call it."""

    def __init__(self, session: StoreSession) -> None:
        self._session = session

    def __call__(
        self,
        config: CheckConfig | None = None,
        *,
        only: Collection[str] = (),
        skip: Collection[str] = (),
    ) -> LineageChecks:
        """Return the violations of the rules. `only` and `skip` select rules by name."""
        check_rule_names(only, "rule")
        check_rule_names(skip, "skip")
        with self._session.reading() as view:
            return check_lineage(
                view,
                config or CheckConfig(),
                lambda name: self._session.resolve(name, view),
                only=only,
                skip=skip,
            )
