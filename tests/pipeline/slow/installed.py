"""An environment that has mqis from its wheel, as a user's has, and nothing of this repository."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark

from tools.wheel.building import build_wheel


def environment_with_wheel(directory: Path) -> Path:
    """Makes the environment; returns its Python.

    Its dependencies are those of this environment, so that nothing has to be fetched.
    """
    wheel = build_wheel(directory / "dist")
    made = directory / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(made)], check=True)
    python = made / "bin" / "python"
    quiet = ("--quiet", "--disable-pip-version-check", "--no-deps", "--no-index")
    pip = (sys.executable, "-m", "pip", "--python", str(python), "install")
    subprocess.run([*pip, *quiet, str(wheel)], check=True)
    (packages,) = made.glob("lib/python*/site-packages")
    # An editable mqis in that directory is not found: its own .pth files are not read.
    dependencies = Path(pyspark.__file__).parents[1]
    (packages / "dependencies.pth").write_text(f"{dependencies}\n", "utf-8")
    return python


def worker_of(python: Path) -> str:
    """The program that starts this Python quickly as a worker of Spark."""
    code = "from mqis.pipeline.session import worker_python; print(worker_python())"
    env = without_repository(dict(os.environ)) | {"XDG_CACHE_HOME": str(python.parents[2])}
    done = subprocess.run(
        [str(python), "-c", code], env=env, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def without_repository(settings: dict[str, str]) -> dict[str, str]:
    """The environment variables without the paths by which Python finds this repository."""
    return {name: value for name, value in settings.items() if not name.startswith("PYTHON")}
