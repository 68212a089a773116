"""The archive for executors holds all that tasks import, and has the same bytes each time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from mqis.pipeline.session import package_zip

PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
import mqis.pipeline.sources, mqis.pipeline.transforms.bodies, mqis.pipeline.transforms.traffic
import mqis.pipeline.transforms.hygiene, mqis.pipeline.transforms.rebuild
print({getattr(m, "__file__", "").startswith(sys.argv[1])
       for n, m in sys.modules.items() if n.split(".")[0] == "mqis"})
"""


def test_the_zip_has_what_tasks_import(tmp_path: Path) -> None:
    path = package_zip(tmp_path / "a")
    assert package_zip(tmp_path / "b").read_bytes() == path.read_bytes()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "{True}"
