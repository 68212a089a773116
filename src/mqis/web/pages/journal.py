"""The journals: lists of records, and single records in full."""

from __future__ import annotations

from starlette.responses import Response

from mqis.views.console.journal import (
    KINDS,
    STATES,
    RecordFilter,
    record_page,
    search_journal,
)
from mqis.views.console.server_places import NotShownError
from mqis.web.page_requests import PageRequest


def browse(request: PageRequest) -> Response:
    places = [p for p in request.console.settings.places.all() if p.journal is not None]
    if not places:
        return request.page("nothing.html", title="Journal", text=_NONE)
    name = request.text("server")
    place = next((p for p in places if p.name.lower() == name.lower()), None) or (
        places[0] if not name else None
    )
    if place is None or place.journal is None:
        raise NotShownError(f"there is no journal of {name!r} here")
    wanted = RecordFilter(
        kind=request.text("kind"),
        state=request.text("state"),
        what=request.text("what"),
        peer=request.text("peer"),
        object=request.text("object"),
        heartbeats=request.text("heartbeats") == "yes",
    )
    before = request.number("before") or None
    reader = request.reader(place)
    with reader.names() as names, reader.judge() as judge:
        found, problems = search_journal(place.journal, wanted, before, judge, names)
    return request.page(
        "journal.html",
        400 if problems else 200,
        found=found,
        wanted=wanted,
        problems=problems,
        place=place,
        places=places,
        states=STATES,
        kinds=KINDS,
        before=before,
    )


def show(request: PageRequest) -> Response:
    place = request.console.settings.places.named(request.path("server"))
    if place.journal is None:
        raise NotShownError(f"there is no journal of {place.name} here")
    lsn = int(request.path("lsn"))
    reader = request.reader(place)
    with reader.names() as names, reader.judge() as judge:
        found = record_page(place.journal, lsn, judge, names)
    return request.page("record.html", place=place, found=found, lsn=lsn)


_NONE = (
    "There is no journal to show. A server writes one if replication.journal is set, as 'mqis up' "
    "does; name one with --journal."
)
