"""`Lineage`: the one façade every surface calls."""

from __future__ import annotations

from downriver.service.answering import Answering
from downriver.service.gating import Gating
from downriver.service.governing import Governing
from downriver.service.keeping import Keeping


class Lineage(Gating, Answering, Governing, Keeping):
    """Everything Downriver can do with one store. Safe to share between threads."""
