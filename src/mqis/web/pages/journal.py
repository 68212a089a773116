"""The journals: lists of records, and single records in full."""

from __future__ import annotations

from starlette.responses import Response

from mqis.views.console.journal import KINDS, STATES, RecordFilter, journal_page, record_page
from mqis.views.console.places import PlacesError
from mqis.web.asking import PageRequest


def browse(request: PageRequest) -> Response:
    places = [p for p in request.console.settings.places.all() if p.journal is not None]
    if not places:
        return request.page("nothing.html", title="Journal", text=_NONE)
    name = request.text("server")
    place = next((p for p in places if p.name.lower() == name.lower()), None) or (
        places[0] if not name else None
    )
    if place is None or place.journal is None:
        raise PlacesError(f"there is no journal of {name!r} here")
    wanted = RecordFilter(
        *(request.text(key) for key in ("kind", "state", "what", "peer", "object"))
    )
    problem = wanted.problem()
    found = None
    if problem is None:
        before = request.number("before") or None
        with request.reader(place).judge() as judge:
            found = journal_page(place.journal, wanted, before, judge=judge)
    return request.page(
        "journal.html",
        400 if problem else 200,
        found=found,
        wanted=wanted,
        problem=problem,
        place=place,
        places=places,
        states=STATES,
        kinds=KINDS,
        before=request.number("before") or None,
    )


def show(request: PageRequest) -> Response:
    place = request.console.settings.places.named(request.path("server"))
    if place.journal is None:
        raise PlacesError(f"there is no journal of {place.name} here")
    lsn = int(request.path("lsn"))
    with request.reader(place).judge() as judge:
        found = record_page(place.journal, lsn, judge)
    return request.page("record.html", place=place, found=found, lsn=lsn)


_NONE = (
    "There is no journal to show. A server writes one if replication.journal is set, as 'mqis up' "
    "does; name one with --journal."
)
