"""Where coverage is measured, it is measured of the tests alone.

On Python 3.11 tracing slows down everything that runs meanwhile, traced or not, threefold. So there
is none while pytest and Hypothesis do their own work, and none in tests marked ``untraced``: long
ones whose lines shorter ones reach too.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any

import pytest

#: What traced before it was paused.
_paused: list[Any] = []


@contextmanager
def _without() -> Iterator[None]:
    tracing = sys.gettrace()
    if tracing is None:
        yield
        return
    _paused.append(tracing)
    sys.settrace(None)
    try:
        yield
    finally:
        sys.settrace(_paused.pop())


@contextmanager
def _with() -> Iterator[None]:
    if not _paused or sys.gettrace() is not None:
        yield
        return
    sys.settrace(_paused[-1])
    try:
        yield
    finally:
        sys.settrace(None)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    with _without():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(request: pytest.FixtureRequest) -> Generator[None, Any, Any]:
    if _paused and not request.node.get_closest_marker("untraced"):
        with _with():
            return (yield)
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    if not _paused or item.get_closest_marker("untraced") or _traces_each_example(item):
        return (yield)
    with _with():
        return (yield)


def _traces_each_example(item: pytest.Item) -> bool:
    """Whether the test is a property, whose examples are traced and not what looks for them."""
    handle = getattr(getattr(item, "obj", None), "hypothesis", None)
    test = getattr(handle, "inner_test", None)
    if test is None or iscoroutinefunction(test):
        return False
    if not hasattr(test, "_traced"):

        @wraps(test)
        def traced(*arguments: Any, **named: Any) -> Any:
            with _with():
                return test(*arguments, **named)

        traced._traced = True  # type: ignore[attr-defined]
        handle.inner_test = traced  # type: ignore[union-attr]
    return True
