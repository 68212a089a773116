"""Builds the wheel, installs it into a fresh environment, and uses all of it there.

Usage: python -m tools.wheel [--keep DIR] [--no-pipeline]

The dependencies are those of the locks. Nothing of the project is on the path of the commands.
Exit status 1 if the wheel lacks a file, or a command does not work.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tools.wheel.building import build_wheel, install_wheel, package_files, wheel_files
from tools.wheel.using import (
    Installed,
    WheelError,
    fresh_start,
    use_commands,
    use_declarative,
    use_directory,
    use_enterprise,
    use_pipeline,
    use_sources,
)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--keep", type=Path, help="a new directory for everything")
    parser.add_argument("--no-pipeline", action="store_true", help="leave Spark out")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="mqis-wheel-") as made:
        directory = (options.keep or Path(made)).resolve()
        try:
            _use(directory, pipeline=not options.no_pipeline)
        except (WheelError, subprocess.CalledProcessError) as error:
            print(f"WRONG: {error}")
            return 1
    print("the wheel does all of it in a fresh environment")
    return 0


def _use(directory: Path, *, pipeline: bool) -> None:
    if lacking := package_files() - wheel_files():
        raise WheelError(f"the wheel lacks {', '.join(sorted(lacking))}")
    wheel = build_wheel(directory / "dist")
    print(f"{wheel.name}: {wheel.stat().st_size:,} bytes; installing", flush=True)
    fresh_start(wheel, directory, lambda text: print(text, flush=True))
    commands = install_wheel(wheel, directory / "venv", pipeline=pipeline)
    work = directory / "work"
    work.mkdir()
    mqis = Installed(commands, work, lambda text: print(text, flush=True))
    use_commands(mqis)
    use_directory(mqis)
    use_enterprise(mqis)
    if pipeline:
        use_pipeline(mqis)
        use_sources(mqis)
        use_declarative(mqis)


if __name__ == "__main__":
    sys.exit(main())
