"""`Lineage`, the one façade every surface calls, made of one part a concern."""

from downriver.model.ids import DEFAULT_NAMESPACE
from downriver.service.answering import DEFAULT_LIMIT
from downriver.service.capturing import DBT_NAMESPACE, SqlCapture
from downriver.service.keeping import Status
from downriver.service.lineage import Lineage

__all__ = [
    "DBT_NAMESPACE",
    "DEFAULT_LIMIT",
    "DEFAULT_NAMESPACE",
    "Lineage",
    "SqlCapture",
    "Status",
]
