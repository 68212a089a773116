"""What every test run loads."""

from __future__ import annotations

import signal

from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.plugins.conformance", "tests.plugins.stores"]

# A run in the background of a script may have been told to ignore it, and programs that tests
# start would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How fast anything is, is not for tests to judge: a busy machine is slow at everything.
settings.register_profile("mqis", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("mqis")
