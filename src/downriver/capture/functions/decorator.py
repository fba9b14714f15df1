"""The decorator for functions, coroutines and generators. Each call is a run."""

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

    FindUses = Callable[[Mapping[str, Any]], list[DatasetUse]]


class TrackingOptions(NamedTuple):
    """The options of a tracked function: what to record, and where to send events.

    `sources` and `targets` are called for each call of the function, with its arguments by name.
    """

    sources: FindUses
    targets: FindUses
    emit: Callable[[Event], None]
    names: Callable[[str], DatasetId]
    namespace: str
    description: str = ""
    columns: Sequence[ColumnLineage] = ()
    auto: bool = False
    job_name: str | None = None


def track_function(function: Any, tracking: TrackingOptions) -> Any:
    """Return a wrapper of a function that records its calls."""
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
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        with _Call(function, tracking, args, kwargs).recorded_call() as add_result:
            return add_result(function(*args, **kwargs))

    return wrapper


def _coroutine(function: Callable[..., Any], tracking: TrackingOptions) -> Callable[..., Any]:
    @functools.wraps(function)
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        with _Call(function, tracking, args, kwargs).recorded_call() as add_result:
            return add_result(await function(*args, **kwargs))

    return wrapper


def _generator(function: Callable[..., Any], tracking: TrackingOptions) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        call = _Call(function, tracking, args, kwargs)
        values = function(*args, **kwargs)
        with call.recorded():
            step = functools.partial(next, values)
            while True:
                # The run is current only inside the generator; between values the caller's run is.
                with call.as_current():
                    try:
                        value = step()
                    except StopIteration as end:
                        return call.add_result(end.value)
                try:
                    sent = yield call.add_result(value)
                except GeneratorExit:  # the caller stops early: record the values so far
                    values.close()
                    return None
                except BaseException as thrown:  # noqa: BLE001 — thrown into the generator
                    step = functools.partial(values.throw, thrown)
                else:
                    step = functools.partial(values.send, sent)

    return wrapper


def _async_generator(function: Callable[..., Any], tracking: TrackingOptions) -> Callable[..., Any]:
    @functools.wraps(function)
    async def wrapper(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        call = _Call(function, tracking, args, kwargs)
        values = function(*args, **kwargs)
        with call.recorded():
            step = values.__anext__
            while True:
                with call.as_current():
                    try:
                        value = await step()
                    except StopAsyncIteration:
                        return
                try:
                    sent = yield call.add_result(value)
                except GeneratorExit:
                    await values.aclose()
                    return
                except BaseException as thrown:  # noqa: BLE001 — thrown into the generator
                    step = functools.partial(values.athrow, thrown)
                else:
                    step = functools.partial(values.asend, sent)

    return wrapper


class _Call:
    """One call of a tracked function, from its arguments to its end."""

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
        with guarded("naming the inputs of a tracked function"):
            self._sources = tracking.sources(values)
        with guarded("naming the outputs of a tracked function"):
            self._targets = tracking.targets(values)

    @contextmanager
    def recorded_call(self) -> Iterator[Callable[[Any], Any]]:
        """Record a call that ends when it returns."""
        with self.recorded(), self.as_current():
            yield self.add_result

    @contextmanager
    def recorded(self) -> Iterator[None]:
        """Record the start, and the end or the error."""
        self._emit(render_start)
        try:
            yield
        except BaseException as error:
            self._emit(functools.partial(render_end, error=error))
            raise
        self._complete()

    @contextmanager
    def as_current(self) -> Iterator[None]:
        """Make this the current run for tracked functions and library calls inside."""
        token = enter_run(self.run)
        try:
            if self._tracking.auto:
                with record_library_calls(self.run, self._tracking.names):
                    yield
            else:
                yield
        finally:
            leave_run(token)

    def add_result(self, value: Any) -> Any:
        """Record the shape of a value that the function returns or yields, and return the value."""
        with guarded("reading what a tracked function returned"):
            self._returned = self._returned.plus(describe_frame(value))
        return value

    def _complete(self) -> None:
        with guarded("recording the datasets of a tracked function"):
            for source in self._sources:
                self.run.reads(*source)
            # With several targets, it is unknown to which of them the frame belongs.
            shape = self._returned if len(self._targets) == 1 else UNKNOWN_SHAPE
            for target in self._targets:
                self.run.writes(target.dataset, shape.plus(target.shape))
        tracking = self._tracking
        self._emit(lambda run, text: render_complete(run, text, tracking.columns, tracking.names))

    def _emit(self, render: Callable[[FunctionRun, str], Event]) -> None:
        with guarded("recording a run of a tracked function"):
            self._tracking.emit(render(self.run, self._tracking.description))


def function_name(function: Callable[..., Any]) -> str:
    """Return the name of a function: with its module, unless that is the main script."""
    module = getattr(function, "__module__", None) or "__main__"
    name = getattr(function, "__qualname__", type(function).__qualname__)
    name = name.replace("<locals>.", "")
    return name if module == "__main__" else f"{module}.{name}"


def _arguments(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any]:
    """Return the arguments of a call by name, including defaults and `**kwargs`."""
    signature = inspect.signature(function)
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    values = dict(bound.arguments)
    for name, parameter in signature.parameters.items():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            values.update(values.pop(name, {}))
    return values
