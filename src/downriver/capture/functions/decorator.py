"""The decorator: whatever kind of function it is, a call of it is a run."""

from __future__ import annotations

import functools
import inspect
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from downriver.capture.emit import guarded
from downriver.capture.functions.events import render_complete, render_end, render_start
from downriver.capture.functions.library_calls import record_library_calls
from downriver.capture.functions.runs import (
    UNKNOWN_SHAPE,
    DatasetUse,
    FunctionRun,
    current_run,
    describe_frame,
    enter_run,
    leave_run,
)
from downriver.model.ids import DatasetId, JobId

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Mapping, Sequence

    from downriver.capture.functions.runs import ColumnLineage
    from downriver.openlineage.wire import Event

    Ends = Callable[[Mapping[str, Any]], list[DatasetUse]]


class TrackingOptions(NamedTuple):
    """What to record of a function, and where to send it.

    `sources` and `targets` are asked at each call, with its arguments by name.
    """

    sources: Ends
    targets: Ends
    emit: Callable[[Event], None]
    names: Callable[[str], DatasetId]
    namespace: str
    description: str = ""
    columns: Sequence[ColumnLineage] = ()
    auto: bool = False
    job_name: str | None = None


def track_function(function: Any, tracking: TrackingOptions) -> Any:
    """Return a function like the one given, whose calls are recorded."""
    if isinstance(function, classmethod | staticmethod):
        return type(function)(track_function(function.__func__, tracking))
    if inspect.isasyncgenfunction(function):
        return _async_generator(function, tracking)
    if inspect.iscoroutinefunction(function):
        return _coroutine(function, tracking)
    if inspect.isgeneratorfunction(function):
        return _generator(function, tracking)
    return _plain(function, tracking)


def _plain(function: Callable[..., Any], tracking: TrackingOptions) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with _Call(function, tracking, args, kwargs).running() as seen:
            return seen(function(*args, **kwargs))

    return call


def _coroutine(function: Callable[..., Any], tracking: TrackingOptions) -> Callable[..., Any]:
    @functools.wraps(function)
    async def call(*args: Any, **kwargs: Any) -> Any:
        with _Call(function, tracking, args, kwargs).running() as seen:
            return seen(await function(*args, **kwargs))

    return call


def _generator(function: Callable[..., Any], tracking: TrackingOptions) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        recorded = _Call(function, tracking, args, kwargs)
        values = function(*args, **kwargs)
        with recorded.lasting():
            step = functools.partial(next, values)
            while True:
                # Current only while it works: between two values the caller's run is.
                with recorded.current():
                    try:
                        value = step()
                    except StopIteration as end:
                        return recorded.seen(end.value)
                try:
                    sent = yield recorded.seen(value)
                except GeneratorExit:  # the caller has enough: what was handed out was moved
                    values.close()
                    return None
                except BaseException as thrown:  # noqa: BLE001 — is thrown on into the generator
                    step = functools.partial(values.throw, thrown)
                else:
                    step = functools.partial(values.send, sent)

    return call


def _async_generator(function: Callable[..., Any], tracking: TrackingOptions) -> Callable[..., Any]:
    @functools.wraps(function)
    async def call(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        recorded = _Call(function, tracking, args, kwargs)
        values = function(*args, **kwargs)
        with recorded.lasting():
            step = values.__anext__
            while True:
                with recorded.current():
                    try:
                        value = await step()
                    except StopAsyncIteration:
                        return
                try:
                    sent = yield recorded.seen(value)
                except GeneratorExit:
                    await values.aclose()
                    return
                except BaseException as thrown:  # noqa: BLE001 — is thrown on into the generator
                    step = functools.partial(values.athrow, thrown)
                else:
                    step = functools.partial(values.asend, sent)

    return call


class _Call:
    """One call: the run of it, from the arguments to the end."""

    def __init__(
        self,
        function: Callable[..., Any],
        tracking: TrackingOptions,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> None:
        self._tracking = tracking
        self._returned = UNKNOWN_SHAPE
        name = tracking.job_name or function_name(function)
        self.run = FunctionRun(JobId(tracking.namespace, name), current_run())
        self._sources: list[DatasetUse] = []
        self._targets: list[DatasetUse] = []
        values: dict[str, Any] = {}
        with guarded("reading the arguments of a tracked function"):
            values = _arguments(function, args, kwargs)
        with guarded("naming what a tracked function reads"):
            self._sources = tracking.sources(values)
        with guarded("naming what a tracked function writes"):
            self._targets = tracking.targets(values)

    @contextmanager
    def running(self) -> Iterator[Callable[[Any], Any]]:
        """Record a call that is over when it returns."""
        with self.lasting(), self.current():
            yield self.seen

    @contextmanager
    def lasting(self) -> Iterator[None]:
        """Record the beginning, and the end however it comes."""
        self._emit(render_start)
        try:
            yield
        except BaseException as error:
            self._emit(functools.partial(render_end, error=error))
            raise
        self._complete()

    @contextmanager
    def current(self) -> Iterator[None]:
        """Make this the run that tracked functions and watched reads inside belong to."""
        token = enter_run(self.run)
        try:
            if self._tracking.auto:
                with record_library_calls(self.run, self._tracking.names):
                    yield
            else:
                yield
        finally:
            leave_run(token)

    def seen(self, value: Any) -> Any:
        """Note what a value that the function hands out looks like, and return it."""
        with guarded("looking at what a tracked function returned"):
            self._returned = self._returned.plus(describe_frame(value))
        return value

    def _complete(self) -> None:
        with guarded("recording what a tracked function did"):
            for source in self._sources:
                self.run.reads(*source)
            alone = len(self._targets) == 1
            for target in self._targets:
                seen = self._returned if alone else UNKNOWN_SHAPE
                self.run.writes(target.dataset, seen.plus(target.described))
        tracking = self._tracking
        self._emit(lambda run, said: render_complete(run, said, tracking.columns, tracking.names))

    def _emit(self, render: Callable[[FunctionRun, str], Event]) -> None:
        with guarded("recording a run of a tracked function"):
            self._tracking.emit(render(self.run, self._tracking.description))


def function_name(function: Callable[..., Any]) -> str:
    """Return what a function is called: with its module, unless it is the script that runs."""
    module = getattr(function, "__module__", None) or "__main__"
    name = getattr(function, "__qualname__", type(function).__qualname__)
    name = name.replace("<locals>.", "")
    return name if module == "__main__" else f"{module}.{name}"


def _arguments(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any]:
    """Return the arguments of a call by name, defaults and keyword arguments among them."""
    signature = inspect.signature(function)
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    values = dict(bound.arguments)
    for name, parameter in signature.parameters.items():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            values.update(values.pop(name, {}))
    return values
