"""Triggers: findings start actions on entities downstream of them."""

from downriver.govern.triggers.actions import ActionRunner
from downriver.govern.triggers.config import TriggerRule, parse_triggers, read_triggers
from downriver.govern.triggers.matches import match_triggers

__all__ = ["ActionRunner", "TriggerRule", "match_triggers", "parse_triggers", "read_triggers"]
