"""Plugins and settings of every test run."""

from __future__ import annotations

import gc
import os
import signal
from pathlib import Path

from hypothesis import HealthCheck, settings

pytest_plugins = [
    "tests.plugins.conformance",
    "tests.plugins.reached",
    "tests.plugins.stores",
    "tests.plugins.untraced",
]

# A run in the background of a script may have been told to ignore it, and programs that tests
# start would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How fast anything is, is not for tests to judge: a busy machine is slow at everything. So they
# wait for events, with the deadlines of tests/waiting.py (MQIS_TEST_PATIENCE=4: four times longer).
# MQIS_EXAMPLES=1000 looks deeper than there is time for in every run; each run draws anew.
settings.register_profile(
    "mqis",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    max_examples=int(os.environ.get("MQIS_EXAMPLES", "25")),
)
settings.load_profile("mqis")

os.environ.setdefault("KRB5_CONFIG", str(Path(__file__).parent / "data" / "krb5-offline.conf"))

# A tenth of the time went into looking for garbage, again and again among all modules and tests.
gc.set_threshold(20_000, 20, 20)


def pytest_collection_finish() -> None:
    gc.freeze()
