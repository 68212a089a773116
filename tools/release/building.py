"""Builds the files of a release from a clone of the commit, so that nothing else gets in."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from zipfile import ZipFile

from tools.release.sbom import bill_of_materials, locked

ROOT = Path(__file__).resolve().parents[2]
SUMS = "SHA256SUMS"


def clone(target: Path) -> None:
    """Clones the commit that is checked out."""
    _run(["git", "clone", "--quiet", "--shared", "--no-tags", str(ROOT), str(target)], ROOT)


def commit_time(source: Path) -> int:
    done = _run(["git", "log", "-1", "--format=%ct"], source)
    return int(done)


def build(source: Path, target: Path, generator: Path | None) -> None:
    """Builds everything from a clone; without a ``generator`` there is no site."""
    target.mkdir(parents=True)
    moment = commit_time(source)
    environment = os.environ | {
        "SOURCE_DATE_EPOCH": str(moment),
        "PYTHONPATH": f"{source / 'src'}:{source}",
        "PYTHONHASHSEED": "0",
    }
    _run([sys.executable, "-m", "hatchling", "build", "-d", str(target)], source, environment)
    (wheel,) = target.glob("mqis-*.whl")
    version = wheel.name.split("-")[1]
    manual = source / ".build" / "man"
    _run([sys.executable, "-m", "mqis", "man", str(manual)], source, environment)
    pack(manual, target / f"mqis-{version}-man.tar.gz", f"mqis-{version}/man1", moment)
    if generator is not None:
        pages = source / ".build" / "site" / "pages"
        _run([sys.executable, "tools/site_pages.py", str(pages)], source, environment)
        config = ["build", "--strict", "--clean", "--config-file", "mkdocs.yml"]
        _run([str(generator), *config], source, environment)
        html = source / ".build" / "site" / "html"
        pack(html, target / f"mqis-{version}-site.tar.gz", f"mqis-{version}/site", moment)
    bill = bill_of_materials(version, metadata_of(wheel), locked(source / "requirements"), moment)
    (target / f"mqis-{version}.cdx.json").write_text(json.dumps(bill, indent=2) + "\n", "utf-8")
    write_sums(target)


def metadata_of(wheel: Path) -> str:
    with ZipFile(wheel) as archive:
        name = next(each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
        return archive.read(name).decode()


def pack(directory: Path, target: Path, inside: str, moment: int) -> None:
    """Packs a directory so that the same files give the same bytes, whoever packs them."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(each for each in directory.rglob("*") if each.is_file()):
            info = tarfile.TarInfo(f"{inside}/{path.relative_to(directory).as_posix()}")
            content = path.read_bytes()
            info.size, info.mtime, info.mode = len(content), moment, 0o644
            archive.addfile(info, io.BytesIO(content))
    target.write_bytes(gzip.compress(made.getvalue(), mtime=moment))


def sums(directory: Path) -> dict[str, str]:
    """The SHA-256 of every file by its name."""
    files = sorted(path for path in directory.iterdir() if path.name != SUMS)
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def write_sums(directory: Path) -> None:
    """Writes the checksums as ``sha256sum --check`` reads them."""
    lines = [f"{digest}  {name}\n" for name, digest in sums(directory).items()]
    (directory / SUMS).write_text("".join(lines), "utf-8")


def _run(command: list[str], directory: Path, environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise ReleaseError(f"{' '.join(command)}: {done.stderr or done.stdout}")
    return done.stdout


class ReleaseError(Exception):
    """A step of the release failed."""
