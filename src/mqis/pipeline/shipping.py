"""Ships mqis to executors that do not have it: a zip of this package, sent with the job.

Its dependencies (NumPy, PyArrow, SciPy) must be installed on the executors; they are not sent.
"""

from __future__ import annotations

import zipfile
from hashlib import blake2b
from pathlib import Path
from typing import Any

import mqis
from mqis.files import whole_file

_PACKAGE = Path(mqis.__file__).parent
#: What runs in tasks; servers, clients and commands are not sent.
_MODULES = ("__init__.py", "files.py", "findings.py")
_PACKAGES = ("wire", "protocol", "places", "pipeline")
#: A fixed date, so that the same files give the same bytes; the earliest that zip can store.
_EPOCH = (1980, 1, 1, 0, 0, 0)


def package_zip(directory: Path) -> Path:
    """Returns the zip of the current sources; writes it if there is none yet."""
    sources = {path: path.read_bytes() for path in _sources()}
    digest = blake2b(digest_size=8)
    for path, data in sources.items():
        digest.update(str(path).encode())
        digest.update(data)
    target = directory / f"mqis-{digest.hexdigest()}.zip"
    if not target.exists():
        directory.mkdir(parents=True, exist_ok=True)
        with whole_file(target) as out, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            for path, data in sources.items():
                name = str(Path("mqis") / path.relative_to(_PACKAGE))
                archive.writestr(zipfile.ZipInfo(name, _EPOCH), data)
    return target


def _sources() -> list[Path]:
    packages = [path for part in _PACKAGES for path in sorted((_PACKAGE / part).rglob("*.py"))]
    return [*(_PACKAGE / module for module in _MODULES), *packages]


def ship(session: Any, directory: Path, *, connect: bool) -> None:
    """Sends the code to the executors of a session."""
    path = str(package_zip(directory))
    if connect:
        session.addArtifacts(path, pyfile=True)
    else:
        session.sparkContext.addPyFile(path)
