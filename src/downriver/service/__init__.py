"""`Lineage`, the one façade every surface calls, made of one part a concern."""

from downriver.model.ids import DEFAULT_NAMESPACE
from downriver.service.admin import Status
from downriver.service.capture import DBT_NAMESPACE, SqlCapture
from downriver.service.lineage import Lineage
from downriver.service.trace import DEFAULT_LIMIT

__all__ = [
    "DBT_NAMESPACE",
    "DEFAULT_LIMIT",
    "DEFAULT_NAMESPACE",
    "Lineage",
    "SqlCapture",
    "Status",
]
