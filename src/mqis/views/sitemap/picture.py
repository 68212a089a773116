"""The picture of the map as the console and the commands write it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from mqis.config.privatefiles import private_output
from mqis.protocol.errors import StorageError
from mqis.views.sitemap.build import MapRequest, site_map
from mqis.views.sitemap.case import RouteCase
from mqis.views.sitemap.model import SiteMap
from mqis.views.sitemap.svg import draw, notes_of
from mqis.wire.guid import Guid


def map_of(
    case: RouteCase, roles: Mapping[Guid, str], loads: Mapping[Guid, float] | None = None
) -> SiteMap:
    return site_map(case.snapshot, MapRequest(roles, case.route, case.off, loads))


def picture(
    case: RouteCase,
    roles: Mapping[Guid, str] = MappingProxyType({}),
    loads: Mapping[Guid, float] | None = None,
) -> str:
    """Draws the map as SVG."""
    found = map_of(case, roles, loads)
    return draw(found, [*case.notes(), *notes_of(found)])


def write_picture(path: Path, text: str) -> None:
    """Writes a picture to a file; raises ``StorageError`` with the reason."""
    try:
        with private_output(path) as out:
            out.write(text.encode())
    except OSError as error:
        raise StorageError(f"{path}: cannot be written: {error.strerror or error}") from error
