"""Measures coverage only while tests run.

On Python 3.11 tracing makes all code three times slower, whether it is measured or not. So tracing
is off while pytest and Hypothesis do their own work, and where lines are reached again and again:
in tests marked ``untraced`` (long ones, whose lines shorter tests reach too), in most cases of a
test with many parameters and in most examples of a property.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager, nullcontext
from functools import wraps
from inspect import iscoroutinefunction
from itertools import count
from typing import Any

import pytest

#: So many cases of one test are traced, and so many examples of one property.
CASES = 6
EXAMPLES = 20

#: What traced before it was paused.
_paused: list[Any] = []
#: How often each test was traced, by its name without parameters.
_traced: Counter[str] = Counter()


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
    if not _paused or item.get_closest_marker("untraced") or not _is_among_the_first(item):
        return (yield)
    if _traces_examples(item):
        return (yield)
    with _with():
        return (yield)


def _is_among_the_first(item: pytest.Item) -> bool:
    name = item.nodeid.partition("[")[0]
    _traced[name] += 1
    return _traced[name] <= CASES


def _traces_examples(item: pytest.Item) -> bool:
    """Makes a property test trace its first examples, not their generation; False if it is none."""
    handle = getattr(getattr(item, "obj", None), "hypothesis", None)
    test = getattr(handle, "inner_test", None)
    if test is None or iscoroutinefunction(test):
        return False
    if not hasattr(test, "_traced"):
        examples = count(1)

        @wraps(test)
        def traced(*arguments: Any, **named: Any) -> Any:
            with _with() if next(examples) <= EXAMPLES else nullcontext():
                return test(*arguments, **named)

        traced._traced = True  # type: ignore[attr-defined]
        handle.inner_test = traced  # type: ignore[union-attr]
    return True
