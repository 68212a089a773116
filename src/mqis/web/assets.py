"""The static files under addresses that name their content, so that no browser shows an old one.

``/static/console.css?v=…`` holds the first digits of the file's SHA-256. A browser may keep that
forever: other content has another address. Any other address of a file is checked at each use.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

_FOREVER = "public, max-age=31536000, immutable"
_DIGITS = 16


class Assets(StaticFiles):
    """Serves the files of a directory; ``address`` is what pages name a file by."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory=directory)
        self._home = directory.resolve()
        #: The state of a file on the disk, and the digest of its content then.
        self._known: dict[str, tuple[tuple[int, ...], str]] = {}

    def address(self, name: str) -> str:
        return f"/static/{name}?v={self.version(name)}"

    def version(self, name: str) -> str:
        """The digest of a file, computed again after the file was replaced."""
        path = self._home / name
        found = path.stat()
        state = found.st_ino, found.st_mtime_ns, found.st_size
        known = self._known.get(name)
        if known is None or known[0] != state:
            digest = hashlib.sha256(path.read_bytes()).hexdigest()[:_DIGITS]
            known = self._known[name] = state, digest
        return known[1]

    def file_response(
        self,
        full_path: str | os.PathLike[str],
        stat_result: os.stat_result,
        scope: Scope,
        status_code: int = 200,
    ) -> Response:
        response = super().file_response(full_path, stat_result, scope, status_code)
        name = Path(full_path).relative_to(self._home).as_posix()
        if scope["query_string"] == f"v={self.version(name)}".encode():
            response.headers["Cache-Control"] = _FOREVER
        return response
