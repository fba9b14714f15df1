"""Runs recorded actions: commands and webhooks.

An action is reserved in the store before it starts. If the process dies, it is due again when the
reservation ends, so it may run twice; `Idempotency-Key` and `DOWNRIVER_ACTION` identify it.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import threading
from typing import TYPE_CHECKING, Any

import msgspec

from downriver.errors import InvalidRequestError, StoreError
from downriver.govern.http_post import HttpPost, PostFailedError
from downriver.govern.watch.config import read_secret
from downriver.model.trust.triggers import ActionState
from downriver.openlineage.wire import render_time

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from downriver.govern.triggers.config import TriggerRule
    from downriver.model.trust.triggers import TriggeredAction
    from downriver.store import Store

log = logging.getLogger("downriver")

_SECOND = 1_000_000
_LEASE = 60 * _SECOND  # after the longest time that an action may run
_FIRST_WAIT, _LONGEST_WAIT = 15 * _SECOND, 900 * _SECOND
_OUTPUT = 2000  # characters of the output of a command that are recorded
_LOOK = 5.0  # seconds between two checks of the queue


class ActionFailedError(Exception):
    """An action failed. The text contains the reason, without secrets."""


class ActionRunner:
    """Runs the actions that are due, one after another."""

    def __init__(
        self, store: Store, rules: Sequence[TriggerRule], clock: Callable[[], int]
    ) -> None:
        self._store = store
        self._rules = {rule.name: rule for rule in rules}
        self._clock = clock
        self._senders = {rule.name: _open_post(rule) for rule in rules if rule.webhook}
        self._woken = threading.Event()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def run_due(self) -> list[TriggeredAction]:
        """Run all actions that are due, and return them with their outcome."""
        finished: list[TriggeredAction] = []
        longest = max((rule.longest for rule in self._rules.values()), default=0)
        while not self._stopped.is_set():
            now = self._clock()
            with self._store.ledger() as ledger:
                action = ledger.triggers.claim(now, now + longest + _LEASE)
            if action is None:
                break
            due = self._run(action)
            with self._store.ledger() as ledger:
                ledger.triggers.save(action, due)
            finished.append(action)
        return finished

    def start(self) -> None:
        """Run actions in a thread until `stop`."""
        self._thread = threading.Thread(target=self._work, name="downriver-triggers", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Wake the thread, because there are new actions."""
        self._woken.set()

    def stop(self, timeout: float) -> None:
        """Finish the current action; others stay in the store."""
        self._stopped.set()
        self._woken.set()
        if self._thread is not None:
            self._thread.join(timeout)

    def _work(self) -> None:
        while not self._stopped.is_set():
            try:
                self.run_due()
            except StoreError as exc:
                log.warning("triggers: %s; their actions stay queued", exc.message)
            self._woken.wait(_LOOK)
            self._woken.clear()

    def _run(self, action: TriggeredAction) -> int:
        """Run an action, set its state, and return when it is due again."""
        rule = self._rules.get(action.trigger)
        if rule is None:
            reason = "the configuration has no trigger of this name"
            return self._finish(action, ActionState.FAILED, reason)
        if action.attempts > rule.attempts:
            return self._finish(action, ActionState.FAILED, "interrupted in its last attempt")
        try:
            result = self._post(action) if rule.webhook else _run_command(rule, action)
        except ActionFailedError as exc:
            if action.attempts >= rule.attempts:
                return self._finish(action, ActionState.FAILED, str(exc))
            wait: int = min(_FIRST_WAIT * 2 ** min(action.attempts - 1, 10), _LONGEST_WAIT)
            action.state, action.result = ActionState.WAITING, str(exc)
            log.warning("trigger %s: %s; it is tried again later", action.trigger, exc)
            return self._clock() + wait
        return self._finish(action, ActionState.DONE, result)

    def _finish(self, action: TriggeredAction, state: ActionState, result: str) -> int:
        now = self._clock()
        action.state, action.result, action.finished_at = state, result, render_time(now)
        return now

    def _post(self, action: TriggeredAction) -> str:
        rule = self._rules[action.trigger]
        body = render_payload(action) if rule.body is None else msgspec.json.encode(rule.body)
        key = {"Idempotency-Key": f"downriver-{action.id}"}
        try:
            return f"answered {self._senders[action.trigger].send(body, key)}"
        except PostFailedError as exc:
            raise ActionFailedError(str(exc)) from exc


def render_payload(action: TriggeredAction) -> bytes:
    """Return the body for a webhook, which is also the standard input of a command."""
    content: dict[str, Any] = {"source": "downriver", "action": action}
    return msgspec.json.encode(content)


def _open_post(rule: TriggerRule) -> HttpPost:
    field = f"triggers.{rule.name}"
    headers = {
        name: read_secret(text, f"{field}.headers.{name}") for name, text in rule.headers.items()
    }
    if any("\n" in value or "\r" in value for value in headers.values()):
        raise InvalidRequestError(f"{field}.headers", "a value contains a line break")
    return HttpPost(read_secret(rule.webhook, f"{field}.webhook"), rule.seconds, headers)


def _run_command(rule: TriggerRule, action: TriggeredAction) -> str:
    variables = {
        "DOWNRIVER_ACTION": str(action.id),
        "DOWNRIVER_TRIGGER": action.trigger,
        "DOWNRIVER_TARGET": action.target,
    }
    arguments = rule.arguments(action)
    _refuse_options(rule.command, arguments)
    try:
        with subprocess.Popen(  # noqa: S603 — no shell; the command is from the configuration
            arguments,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **variables},
            start_new_session=True,  # its child processes must end with it
        ) as process:
            try:
                printed, _ = process.communicate(render_payload(action), rule.seconds)
            finally:
                if process.poll() is None:
                    _end_group(process)
    except subprocess.TimeoutExpired as exc:
        raise ActionFailedError(f"did not end within {rule.timeout}") from exc
    except (OSError, ValueError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else str(exc)
        raise ActionFailedError(f"cannot be run: {reason}") from exc
    output = printed.decode(errors="replace").strip()[-_OUTPUT:]
    if process.returncode:
        raise ActionFailedError(
            ": ".join(filter(None, (f"exit code {process.returncode}", output)))
        )
    return output or "exit code 0"


def _refuse_options(command: Sequence[str], arguments: Sequence[str]) -> None:
    """Raise if a name would be an option of the command. Any producer of events can set names."""
    for given, argument in zip(command, arguments, strict=True):
        if given == "--":
            return
        if argument.startswith("-") and not given.startswith("-"):
            raise ActionFailedError(
                f"was not run: the command would read the name {argument!r} as an option; "
                "write the argument -- before it"
            )


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """End a process and its children, so that the next try does not run beside them."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (AttributeError, ProcessLookupError):  # Windows has no groups
        process.kill()
