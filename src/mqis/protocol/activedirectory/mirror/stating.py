"""Says how equal a mirror is, for the command and the console."""

from __future__ import annotations

from collections.abc import Mapping

from mqis.protocol.activedirectory.mirror.cursor import MirrorCursor
from mqis.protocol.activedirectory.mirror.leftout import LeftOut, summary
from mqis.texts import moment
from mqis.wire.guid import Guid


def state_of(cursor: MirrorCursor, left_out: Mapping[Guid, LeftOut]) -> str:
    """``equal to dc1 up to change 7``, ``... but for 2 left out (reasons)``, and what differed."""
    text = f"equal to {position_of(cursor, ' up to change')}"
    if left_out:
        text += f", but for {len(left_out)} left out ({summary(left_out.values())})"
    if not cursor.compared_s:
        return f"{text}, as far as numbers of changes tell: it was never compared as a whole"
    if cursor.differed:
        text += f"; {cursor.differed} differed when it was compared at {moment(cursor.compared_s)}"
    return text


def position_of(cursor: MirrorCursor, up_to: str) -> str:
    """Each controller and the number of its change, such as ``dc1 up to change 7``."""
    return ", ".join(f"{each.server.host}{up_to} {each.server.usn}" for each in cursor.each)
