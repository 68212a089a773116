"""One quick run of the benchmarks, which all tests of them look at."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.bench.running import RUN, bench


@pytest.fixture(scope="session")
def report() -> dict[str, Any]:
    done = bench("--quick", "--json", *RUN)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found
