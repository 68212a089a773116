"""The wheel has every file of the package; ``make wheel`` installs it and uses all of it."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from mqis.cli.deploy import FILES
from tools.wheel.building import ROOT, build_wheel, package_files, wheel_files
from tools.wheel.using import Installed, WheelError


def test_the_wheel_has_every_file_of_the_package() -> None:
    in_wheel = wheel_files()
    assert {name for name in in_wheel if not name.startswith("deploy/")} == package_files()
    for needed in ("web/static/cytoscape.min.js", "web/templates/map.html", "py.typed"):
        assert f"src/mqis/{needed}" in in_wheel


def test_the_built_wheel_has_deploy_and_the_commit(tmp_path: Path) -> None:
    with ZipFile(build_wheel(tmp_path)) as wheel:
        names = set(wheel.namelist())
        info = next(name for name in names if name.endswith(".dist-info/METADATA"))
        metadata = wheel.read(info).decode()
        if (ROOT / ".git").exists():
            assert re.fullmatch(r"[0-9a-f]{7,}(-dirty)?\n", wheel.read("mqis/COMMIT").decode())
    assert {f"mqis/deploy/{name}" for name in FILES.values()} <= names
    needed = re.findall(r"^Requires-Dist: ([\w-]+)[^;\n]*(?:; sys_platform.*)?$", metadata, re.M)
    assert "cryptography" in needed
    assert not {"numpy", "scipy", "networkx", "psycopg"} & set(needed), "the core is light"
    assert {"all", "dns", "graphs", "kerberos", "pipeline", "postgres"} == set(
        re.findall(r"^Provides-Extra: (\w+)$", metadata, re.M)
    )
    assert "Author: The mqis project\n" in metadata
    assert "](docs/" not in metadata, "links of the README are absolute"


def test_a_command_that_fails_is_found(tmp_path: Path) -> None:
    (tmp_path / "mqis").symlink_to(sys.executable)
    fresh = Installed(tmp_path, tmp_path, lambda _text: None)
    assert fresh.run("-c", "print('here')") == "here\n"
    with pytest.raises(WheelError, match="status 3: no data"):
        fresh.run("-c", "import sys; print('no data', file=sys.stderr); sys.exit(3)")
    with pytest.raises(WheelError, match="this does not hold: a page"):
        fresh.expect("a page", "")
