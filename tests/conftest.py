"""What every test run loads."""

from __future__ import annotations

pytest_plugins = ["tests.plugins.conformance", "tests.plugins.stores"]
