"""A side of a comparison from a live server, as its user sees it."""

from __future__ import annotations

from mqis.client.remote import Remote
from mqis.client.whole import UNTOLD, whole_directory
from mqis.protocol.directory.objects import SECURITY_PROPERTY
from mqis.views.comparison.side import DirectorySide


def served_side(remote: Remote, label: str, user: str, *, permissions: bool) -> DirectorySide:
    """Reads the server while the objects are read."""
    hidden = UNTOLD if permissions else UNTOLD | frozenset(SECURITY_PROPERTY.values())
    objects = whole_directory(remote, lambda _done, _total: None, permissions=permissions)
    note = f"{label}: as {user} sees it"
    return DirectorySide(label, objects, frozenset(hidden), (note,))
