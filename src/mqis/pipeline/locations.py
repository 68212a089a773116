"""Places of inputs and tables.

Inputs are paths, or URIs of stores of objects (``mqis.places``). Tables and reports are written to
directories that every machine can reach: Python and Spark disagree about anything else. So a place
for them with any scheme but ``file`` is refused before something is written.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote

from mqis.files import FILE_MODE, refuse_database, system_reason, write_whole
from mqis.places import PlaceError, RemoteAddress, parse_place
from mqis.wire.errors import MqisError

#: A ``Path`` has one slash where the user wrote two.
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(/.*)", re.DOTALL)
_LOCAL_HOSTS = ("", "localhost")


def local_path(place: str | Path) -> Path:
    """The path that a plain path or a ``file:`` URI names; raises ``MqisError`` for others."""
    match = _SCHEME.fullmatch(str(place))
    if match is None:
        path = Path(str(place).removeprefix("file:"))
        # ./s3a:/x is local, and has to stay so without its dot.
        return path.absolute() if _SCHEME.fullmatch(str(path)) else path
    scheme, rest = match[1].lower(), match[2]
    if scheme != "file":
        raise MqisError(
            f"{_written(scheme, rest)}: the scheme {scheme}: is not supported; give a path or "
            "file:///PATH of a directory that all machines of the Spark share, such as a mounted "
            f"bucket (./{scheme}:... is a local directory of that name)"
        )
    host, _, below = rest.removeprefix("//").partition("/") if rest[:2] == "//" else ("", "", rest)
    if host not in _LOCAL_HOSTS:
        raise MqisError(f"file:{rest}: the file is at {host!r}; give a path of this computer")
    return Path(unquote(f"/{below.lstrip('/')}"))


def input_places(given: str | Sequence[str]) -> list[Path | RemoteAddress]:
    """The places of a list; in a text, commas separate them.

    A URI with a credential is refused, because the names of files go into tables and plans.
    """
    found = []
    parts = map(str.strip, given.split(",")) if isinstance(given, str) else given
    for part in filter(None, parts):
        try:
            place = parse_place(part)
        except PlaceError as error:
            raise MqisError(str(error)) from None
        if isinstance(place, RemoteAddress) and place.secrets:
            raise MqisError(
                f"{place}: leave the credential out of the URI, and set it in the environment of "
                "the driver and the executors (S3: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY)"
            )
        found.append(place)
    return found


def _written(scheme: str, rest: str) -> str:
    """The place as its user probably wrote it."""
    return f"{scheme}://{rest.lstrip('/')}"


def write_output(out: Path, data: bytes, mode: int = FILE_MODE) -> None:
    """Writes a file in a directory that is made if it is missing."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        refuse_database(out)
        write_whole(out, data, mode)
    except OSError as error:
        raise MqisError(f"{out}: cannot be written: {system_reason(error)}") from error
