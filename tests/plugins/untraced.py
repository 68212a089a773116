"""Measures coverage only while tests run.

On Python 3.11 tracing makes all code three times slower, whether it is measured or not. So tracing
is off while pytest and Hypothesis do their own work, and in tests marked ``untraced``: long tests
whose lines shorter tests reach too.
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
    """Makes a property test trace its examples but not their generation; False if it is none."""
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
