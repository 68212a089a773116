"""Builds the wheel and installs it, with exactly what the locks name, outside the project."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).resolve().parents[2]
_PACKAGE = "src/mqis"
#: The modules by which Spark finds the sources of the pipeline.
_SPARK_MODULES = "src/pyspark_*.py"


def wheel_files(root: Path = ROOT) -> set[str]:
    """The files of the package that the wheel would have, as paths in the project."""
    builder = WheelBuilder(str(root))
    with builder.config.set_build_data({"artifacts": [], "force_include": {}}):
        found = builder.recurse_included_files()
        return {Path(file.path).relative_to(root).as_posix() for file in found}


def package_files(root: Path = ROOT) -> set[str]:
    """The files that the package has in the project, without compiled code."""
    files = (path for path in (root / _PACKAGE).rglob("*") if path.is_file())
    found = (*files, *root.glob(_SPARK_MODULES))
    return {path.relative_to(root).as_posix() for path in found if "__pycache__" not in path.parts}


def build_wheel(target: Path) -> Path:
    """Builds the wheel into a directory; the build tool is the one of this environment."""
    _pip(sys.executable, "wheel", "--no-build-isolation", "--no-deps", "-w", str(target), str(ROOT))
    (wheel,) = target.glob("mqis-*.whl")
    return wheel


def install_wheel(wheel: Path, environment: Path, *, pipeline: bool) -> Path:
    """Makes an environment with the wheel; returns the directory of its commands."""
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    python = str(environment / "bin" / "python")
    locked = ("--require-hashes", "--only-binary", ":all:")
    requirements = ROOT / "requirements"
    _pip(python, "install", *locked, "-r", str(requirements / "run.lock"))
    if pipeline:
        spark = ("--use-pep517", "--no-binary", "pyspark")
        _pip(python, "install", *locked, *spark, "-r", str(requirements / "pipeline.lock"))
    _pip(python, "install", "--no-deps", str(wheel))
    return environment / "bin"


def install_light(wheel: Path, environment: Path) -> Path:
    """Installs the wheel alone as users do, in the versions of the lock; returns its commands."""
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    constraints = environment / "constraints.txt"
    found = re.findall(
        r"^([\w.-]+==[^\s;]+)", (ROOT / "requirements" / "run.lock").read_text("utf-8"), re.M
    )
    constraints.write_text("".join(f"{line}\n" for line in found), "utf-8")
    python = str(environment / "bin" / "python")
    _pip(python, "install", "--only-binary", ":all:", "-c", str(constraints), str(wheel))
    return environment / "bin"


def _pip(python: str, what: str, *arguments: str) -> None:
    quiet = ("--quiet", "--disable-pip-version-check")
    subprocess.run([python, "-m", "pip", what, *quiet, *arguments], check=True)
