"""`Lineage`, which every surface uses: a session on one store, and one part for each concern."""

from downriver.model.ids import DEFAULT_NAMESPACE
from downriver.service.admin import Status
from downriver.service.limits import DBT_NAMESPACE, DEFAULT_LIMIT
from downriver.service.lineage import Lineage

__all__ = ["DBT_NAMESPACE", "DEFAULT_LIMIT", "DEFAULT_NAMESPACE", "Lineage", "Status"]
