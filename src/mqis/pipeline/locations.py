"""Places of inputs and tables. Today they are files and directories that every machine can reach.

Python and Spark disagree about anything else: Python takes ``s3a://bucket`` for a directory of that
name. So a place with any scheme but ``file`` is refused before something is read or written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

from mqis.wire.errors import MqisError

#: A ``Path`` has one slash where the user wrote two.
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(/.*)", re.DOTALL)
_LOCAL_HOSTS = ("", "localhost")


class LocationError(MqisError):
    """A path or URI cannot be used; the text says what is supported."""


def local_path(place: str | Path) -> Path:
    """The path that a plain path or a ``file:`` URI names; raises ``LocationError`` for others."""
    match = _SCHEME.fullmatch(str(place))
    if match is None:
        path = Path(str(place).removeprefix("file:"))
        # ./s3a:/x is local, and has to stay so without its dot.
        return path.absolute() if _SCHEME.fullmatch(str(path)) else path
    scheme, rest = match[1].lower(), match[2]
    if scheme != "file":
        raise LocationError(
            f"{_written(scheme, rest)}: the scheme {scheme}: is not supported; give a path or "
            "file:///PATH of a directory that all machines of the Spark share, such as a mounted "
            f"bucket (./{scheme}:... is a local directory of that name)"
        )
    host, _, below = rest.removeprefix("//").partition("/") if rest[:2] == "//" else ("", "", rest)
    if host not in _LOCAL_HOSTS:
        raise LocationError(f"file:{rest}: the file is at {host!r}; give a path of this computer")
    return Path(unquote(f"/{below.lstrip('/')}"))


def local_paths(listed: str) -> Iterator[Path]:
    """The paths of a list that commas separate."""
    for part in listed.split(","):
        if part.strip():
            yield local_path(part.strip())


def _written(scheme: str, rest: str) -> str:
    """The place as its user probably wrote it."""
    return f"{scheme}://{rest.lstrip('/')}"
