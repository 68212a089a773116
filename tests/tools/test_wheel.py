"""The wheel has every file of the package; ``make wheel`` installs it and uses all of it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tools.wheel.building import package_files, wheel_files
from tools.wheel.using import Installed, WheelError


def test_the_wheel_has_every_file_of_the_package() -> None:
    in_wheel = wheel_files()
    assert in_wheel == package_files()
    for needed in ("web/static/cytoscape.min.js", "web/templates/map.html", "py.typed"):
        assert f"src/mqis/{needed}" in in_wheel


def test_a_command_that_fails_is_found(tmp_path: Path) -> None:
    (tmp_path / "mqis").symlink_to(sys.executable)
    fresh = Installed(tmp_path, tmp_path, lambda _text: None)
    assert fresh.run("-c", "print('here')") == "here\n"
    with pytest.raises(WheelError, match="status 3: no data"):
        fresh.run("-c", "import sys; print('no data', file=sys.stderr); sys.exit(3)")
    with pytest.raises(WheelError, match="this does not hold: a page"):
        fresh.expect("a page", "")
