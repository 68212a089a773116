"""What every test run loads."""

from __future__ import annotations

import signal

pytest_plugins = ["tests.plugins.conformance", "tests.plugins.stores"]

# A run in the background of a script may have been told to ignore it, and programs that tests
# start would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
