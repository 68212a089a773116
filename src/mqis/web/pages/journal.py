"""The journals: lists of records, and single records in full."""

from __future__ import annotations

from starlette.responses import Response

from mqis.views.console.journal import KINDS, STATES, RecordFilter, journal_page, record_page
from mqis.views.console.places import PlacesError
from mqis.web.asking import PageRequest


def browse(asked: PageRequest) -> Response:
    places = [p for p in asked.console.settings.places.all() if p.journal is not None]
    if not places:
        return asked.page("nothing.html", title="Journal", text=_NONE)
    name = asked.text("server")
    place = next((p for p in places if p.name.lower() == name.lower()), None) or (
        places[0] if not name else None
    )
    if place is None or place.journal is None:
        raise PlacesError(f"there is no journal of {name!r} here")
    wanted = RecordFilter(*(asked.text(key) for key in ("kind", "state", "what", "peer", "object")))
    problem = wanted.problem()
    found = None
    if problem is None:
        before = asked.number("before") or None
        with asked.reader(place).judge() as judge:
            found = journal_page(place.journal, wanted, before, judge=judge)
    return asked.page(
        "journal.html",
        400 if problem else 200,
        found=found,
        wanted=wanted,
        problem=problem,
        place=place,
        places=places,
        states=STATES,
        kinds=KINDS,
        before=asked.number("before") or None,
    )


def show(asked: PageRequest) -> Response:
    place = asked.console.settings.places.named(asked.path("server"))
    if place.journal is None:
        raise PlacesError(f"there is no journal of {place.name} here")
    lsn = int(asked.path("lsn"))
    with asked.reader(place).judge() as judge:
        found = record_page(place.journal, lsn, judge)
    return asked.page("record.html", place=place, found=found, lsn=lsn)


_NONE = (
    "There is no journal to show. A server writes one if replication.journal is set, as 'mqis up' "
    "does; name one with --journal."
)
