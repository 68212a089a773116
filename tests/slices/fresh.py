"""A slice of ``make wheel``: from nothing to the end of the tour, with the wheel alone."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tools.wheel.building import build_wheel
from tools.wheel.using import fresh_start


@pytest.mark.skipif(sys.platform != "linux", reason="loopback has one address elsewhere")
def test_a_newcomer_sees_the_tour(tmp_path: Path) -> None:
    said: list[str] = []
    fresh_start(build_wheel(tmp_path / "dist"), tmp_path, said.append)
    print("\n".join(said))
    assert any("from nothing to the end of the tour" in line for line in said)
