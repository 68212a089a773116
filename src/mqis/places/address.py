"""The address of a place: a plain path, or a URI of a store of objects.

A URI may carry settings of the store (``?endpoint_override=10.0.0.9:9000&scheme=http``) and, for
S3, a credential. Settings are part of the address. A credential is kept beside it: an address that
is printed, compared or written into a table never has one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote, urlencode

from mqis.places.errors import PlaceError

#: A ``Path`` has one slash where the user wrote two.
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(/.*)", re.DOTALL)
_LOCAL_HOSTS = ("", "localhost")
_ALIASES = {"s3a": "s3", "gcs": "gs", "abfs": "abfss"}
#: The settings that a URI may have, by scheme; pyarrow's documentation explains them.
_SETTINGS = {
    "s3": {"endpoint_override", "region", "scheme"},
    "gs": {"endpoint_override", "scheme", "retry_limit_seconds"},
    "abfss": {"blob_storage_authority", "dfs_storage_authority", "enable_tls"},
    "hdfs": {"user", "replication", "buffer_size"},
}
_SECRETS = ("access_key", "secret_key", "session_token")
#: Schemes whose host may have a user before it: the container of Azure, the user of HDFS.
_WITH_USER = ("abfss", "hdfs")
_LONGEST = 4096


@dataclass(frozen=True, order=True)
class RemoteAddress:
    """A file or directory in a store; ``str`` gives the URI without its credential."""

    scheme: str
    host: str
    path: str
    settings: tuple[tuple[str, str], ...] = ()
    secrets: tuple[tuple[str, str], ...] = field(default=(), repr=False, compare=False)

    def __str__(self) -> str:
        query = f"?{urlencode(self.settings, safe=':/')}" if self.settings else ""
        path = quote(self.path, safe="/=+,@:!~'()*$&")
        return f"{self.scheme}://{self.host}/{path}{query}"

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def parent(self) -> RemoteAddress:
        return replace(self, path=self.path.rpartition("/")[0])

    def __truediv__(self, name: str) -> RemoteAddress:
        return replace(self, path=f"{self.path}/{name}" if self.path else name)


def parse_place(text: str | Path) -> Path | RemoteAddress:
    """Parses a path or a URI; raises ``PlaceError``, which never repeats a credential."""
    match = _URI.fullmatch(str(text))
    if match is None:
        path = Path(str(text).removeprefix("file:"))
        # ./s3:/x is local, and has to stay so without its dot.
        return path.absolute() if _URI.fullmatch(str(path)) else path
    scheme, rest = match[1].lower(), match[2]
    if scheme == "file":
        return _local(rest)
    scheme = _ALIASES.get(scheme, scheme)
    if scheme not in _SETTINGS:
        raise PlaceError(
            f"{scheme}: is not a supported scheme; give a path, or a URI with file:, "
            f"{', '.join(f'{s}:' for s in _SETTINGS)} (./{scheme}:... is a local directory)"
        )
    return _remote(scheme, rest)


def is_remote(text: str | Path) -> bool:
    """Returns whether the text is a URI other than ``file:``."""
    match = _URI.fullmatch(str(text))
    return match is not None and match[1].lower() != "file"


def holds_credential(text: str) -> bool:
    """Returns whether a place as a user wrote it has a credential in it."""
    place = parse_place(text) if text else None
    return isinstance(place, RemoteAddress) and bool(place.secrets)


def _local(rest: str) -> Path:
    host, _, below = rest.removeprefix("//").partition("/") if rest[:2] == "//" else ("", "", rest)
    if host not in _LOCAL_HOSTS:
        raise PlaceError(f"file:{rest}: the file is at {host!r}; give a path of this computer")
    return Path(unquote(f"/{below.lstrip('/')}"))


def _remote(scheme: str, rest: str) -> RemoteAddress:
    whole, _, query = rest.lstrip("/").partition("?")
    host, _, path = whole.partition("/")
    user, at, host = host.rpartition("@")
    secrets: dict[str, str] = {}
    if at and scheme == "s3" and ":" in user:
        key, _, secret = user.partition(":")
        secrets = {"access_key": unquote(key), "secret_key": unquote(secret)}
    elif at and (scheme not in _WITH_USER or ":" in user):
        raise PlaceError(f"{scheme}://{host}: a name or password before the host is not supported")
    elif at:
        host = f"{user}@{host}"
    settings: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if scheme == "s3" and name in _SECRETS:
            secrets[name] = value
        elif name in _SETTINGS[scheme]:
            settings[name] = value
        else:
            known = ", ".join(sorted(_SETTINGS[scheme]))
            raise PlaceError(f"{scheme}://{host}: unknown setting {name!r}; known are {known}")
    made = RemoteAddress(
        scheme,
        host,
        _path(scheme, host, unquote(path)),
        tuple(sorted(settings.items())),
        tuple(sorted(secrets.items())),
    )
    if ("access_key" in secrets) != ("secret_key" in secrets):
        raise PlaceError(f"{made}: access_key and secret_key belong together; give both")
    return made


def _path(scheme: str, host: str, path: str) -> str:
    parts = [part for part in path.split("/") if part]
    if not host or len(path) > _LONGEST or any(part in (".", "..") for part in parts):
        raise PlaceError(f"{scheme}://{host}: write {scheme}://BUCKET/PATH, without . and .. in it")
    if any(not character.isprintable() for character in path):
        raise PlaceError(f"{scheme}://{host}: the path has a character that cannot be printed")
    return "/".join(parts)
