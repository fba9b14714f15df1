"""`Lineage`: the one façade every surface calls."""

from __future__ import annotations

from downriver.service.exporting import Exporting
from downriver.service.flowing import Flowing
from downriver.service.gating import Gating
from downriver.service.governing import Governing
from downriver.service.keeping import Keeping
from downriver.service.relating import Relating


class Lineage(Gating, Flowing, Relating, Exporting, Governing, Keeping):
    """Everything Downriver can do with one store. Safe to share between threads."""
