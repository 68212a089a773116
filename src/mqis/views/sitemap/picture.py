"""The picture of the map as the console and the commands write it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from mqis.files import output_file
from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.errors import StorageError
from mqis.views.sitemap.build import MapRequest, site_map
from mqis.views.sitemap.case import RouteCase
from mqis.views.sitemap.charting import chart_of_objects
from mqis.views.sitemap.loads import loads_of_rows
from mqis.views.sitemap.model import SiteMap
from mqis.views.sitemap.svg import draw, notes_of
from mqis.wire.guid import Guid


def map_of(
    case: RouteCase,
    roles: Mapping[Guid, str],
    loads: Mapping[Guid, float] | None = None,
    states: Mapping[str, str] = MappingProxyType({}),
) -> SiteMap:
    return site_map(case.snapshot, MapRequest(roles, case.route, case.off, loads, states))


def picture(
    case: RouteCase,
    roles: Mapping[Guid, str] = MappingProxyType({}),
    loads: Mapping[Guid, float] | None = None,
    states: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Draws the map as SVG."""
    found = map_of(case, roles, loads, states)
    return draw(found, [*case.notes(), *notes_of(found)])


def picture_of_objects(
    objects: Iterable[DirectoryObject], traffic: Sequence[Mapping[str, Any]] = ()
) -> str:
    """Draws the map of a directory, with the loads of the table ``traffic``; empty without sites
    or with too many of them."""
    chart = chart_of_objects(objects)
    loads = loads_of_rows(chart.snapshot, traffic) if traffic else None
    found = map_of(RouteCase.of(chart.snapshot), chart.roles, loads)
    return draw(found, notes_of(found)) if found.sites and found.drawn else ""


def write_picture(path: Path, text: str) -> None:
    """Writes a picture to a file; raises ``StorageError`` with the reason."""
    try:
        with output_file(path) as out:
            out.write(text.encode())
    except OSError as error:
        raise StorageError(f"{path}: cannot be written: {error.strerror or error}") from error
