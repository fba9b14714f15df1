"""Looking again and again, until told to stop."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from downriver.errors import LakeError, StoreError

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from downriver.govern.watch.couriers import Couriers
    from downriver.govern.watch.monitor import Round

log = logging.getLogger("downriver")

_PATIENCE = 10.0  # seconds for what is being sent when the monitor is stopped


def follow(
    look: Callable[[], Round],
    tell: Callable[[Round], None],
    couriers: Couriers,
    stopped: threading.Event,
    period: float,
) -> None:
    """Look every `period` seconds; a store or lake that is not there for a while is waited for."""
    couriers.start()
    try:
        while not stopped.is_set():
            try:
                tell(look())
                couriers.wake()
            except (StoreError, LakeError) as exc:
                log.warning("%s; looking again in %g s", exc.message, period)
            stopped.wait(period)
    finally:
        couriers.stop(_PATIENCE)
