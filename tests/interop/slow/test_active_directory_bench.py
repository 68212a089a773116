"""The benchmark against a Samba domain controller runs, or says which peer is missing."""

from __future__ import annotations

import pytest

from tests.bench.running import bench

pytestmark = pytest.mark.interop


def test_a_quick_run() -> None:
    done = bench("--quick", "activedirectory")
    assert done.returncode == 0, done.stderr
    if "Samba: skipped:" in done.stdout:
        pytest.skip(done.stdout[done.stdout.index("Samba: skipped:") :].splitlines()[0])
    for row in ("mqis import", "read by path", "lookup, label = x", "commit to visible"):
        assert row in done.stdout
    estates = 0 if "slapd: skipped:" in done.stdout else 3
    if estates:
        for row in ("ldapsearch", "mqis import", "mqis estate check", "mqis mirror, first run"):
            assert f"3 sites: {row}: " in done.stdout
    assert done.stdout.count("aim: ") == 4 + estates
