"""The monitor: finds drift since its last check, records findings and sends alerts."""

from downriver.govern.watch.channels import AlertDispatcher, try_channels
from downriver.govern.watch.config import WatchConfig, parse_watch, read_watch
from downriver.govern.watch.monitor import Monitor, MonitorRound, run_monitor

__all__ = [
    "AlertDispatcher",
    "Monitor",
    "MonitorRound",
    "WatchConfig",
    "parse_watch",
    "read_watch",
    "run_monitor",
    "try_channels",
]
