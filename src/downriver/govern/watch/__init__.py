"""The monitor: what drifted since it last looked, recorded once and told to those concerned."""

from downriver.govern.watch.config import Watch, parse_watch, read_watch
from downriver.govern.watch.couriers import Couriers, try_channels
from downriver.govern.watch.following import follow
from downriver.govern.watch.monitor import Monitor, Round

__all__ = [
    "Couriers",
    "Monitor",
    "Round",
    "Watch",
    "follow",
    "parse_watch",
    "read_watch",
    "try_channels",
]
