"""What the console says about a store that mirrors an Active Directory."""

from __future__ import annotations

from mqis.protocol.activedirectory.mirror.cursor import is_mirror, read_cursor, state_of
from mqis.protocol.activedirectory.mirror.leftout import read_left_out
from mqis.views.console.open_stores import OpenStores
from mqis.views.console.server_places import Places
from mqis.wire.errors import MqisError


def mirror_sentence(places: Places, stores: OpenStores) -> str:
    """The position of the mirror; empty if the console shows a server, or a store that is none."""
    if places.take_calls:
        return ""
    for place in places.all():
        if place.store:
            try:
                with stores.view(place.store) as view:
                    if is_mirror(view):
                        cursor, left_out = read_cursor(view), read_left_out(view)
                        break
            except MqisError:
                continue  # the page itself says what is wrong with the store
    else:
        return ""
    about = "This is a mirror of an Active Directory"
    if cursor is None:
        return f"{about} that is not complete yet."
    return f"{about}, {state_of(cursor, left_out)}. Make changes there."
