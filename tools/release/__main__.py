"""Builds a release of the commit that is checked out, twice, and compares the two.

Usage: python -m tools.release [--into .build/release] [--site ZENSICAL] [--twine TWINE]

The second build is made in another directory. Exit status 1 if a step fails, if a file of the two
builds differs, or if twine finds fault with the metadata.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tools.release.building import ROOT, SUMS, ReleaseError, build, clone, sums


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--into", type=Path, default=ROOT / ".build" / "release")
    parser.add_argument("--site", type=Path, help="the generator of the site; without it, no site")
    parser.add_argument("--twine", type=Path, help="checks the metadata")
    options = parser.parse_args(arguments)
    into = options.into.resolve()
    site = options.site.absolute() if options.site else None
    try:
        _release(into, site, options.twine)
    except ReleaseError as error:
        print(f"WRONG: {error}")
        return 1
    return 0


def _release(into: Path, site: Path | None, twine: Path | None) -> None:
    changed = subprocess.run(
        ["git", "-C", str(ROOT), "status", "--porcelain"], capture_output=True, check=False
    )
    if changed.stdout:
        print("what is not committed is left out")
    with tempfile.TemporaryDirectory(prefix="mqis-release-") as made:
        first, second = Path(made) / "first", Path(made) / "a second place"
        for place in (first, second):
            clone(place / "source")
            build(place / "source", place / "made", site)
        here, there = sums(first / "made"), sums(second / "made")
        if differing := sorted(n for n in here | there if here.get(n) != there.get(n)):
            raise ReleaseError(f"two builds differ in {', '.join(differing)}")
        shutil.rmtree(into, ignore_errors=True)
        shutil.copytree(first / "made", into)
    if twine is not None:
        _check(twine, into)
    for name, digest in here.items():
        print(f"{digest[:16]}  {(into / name).stat().st_size:>10,}  {name}")
    print(f"two builds gave the same bytes; {into / SUMS} has the checksums")


def _check(twine: Path, into: Path) -> None:
    files = [*into.glob("*.whl"), *into.glob("mqis-*[0-9].tar.gz")]
    done = subprocess.run(
        [str(twine), "check", "--strict", *map(str, files)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise ReleaseError(f"twine: {done.stdout}{done.stderr}")
    print(f"twine finds nothing wrong with {', '.join(path.name for path in files)}")


if __name__ == "__main__":
    sys.exit(main())
