"""`Lineage`: the one façade every surface calls."""

from __future__ import annotations

from downriver.service.admin import AdminApi
from downriver.service.entities import EntityApi
from downriver.service.export import ExportApi
from downriver.service.flows import FlowApi
from downriver.service.govern import GovernApi
from downriver.service.impact import ImpactApi


class Lineage(ImpactApi, FlowApi, EntityApi, ExportApi, GovernApi, AdminApi):
    """Everything Downriver can do with one store. Safe to share between threads."""
