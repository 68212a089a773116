"""Queue aliases and distribution lists: entries that stand for queues (MS-MQDSSM 2.3, 3.1.6.9).

CN=NAME,...   msMQ-Custom-Recipient   one format name, in msMQ-Recipient-FormatName
CN=NAME,...   group, msMQ-Group       queues, aliases and lists, in member; it is called DL=GUID

They are no objects of MS-MQDS and have no properties: a queue manager asks for the format names
that they stand for when it sends a message.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Final

from mqis.protocol.ldap.entry import BadAttribute, LdapEntry
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid

FORMAT_NAME: Final = "msMQ-Recipient-FormatName"
MEMBER: Final = "member"
#: What to read of an entry that may be a member of a list.
RECIPIENT_ATTRIBUTES: Final = ("objectClass", "objectGUID")
#: The characters of a format name at most.
LONGEST: Final = 255
#: Lists in lists; a list that was met before is not read again.
MOST_LEVELS: Final = 32

_GUID = r"(?P<guid>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"
#: The forms of 2.1.2 to 2.1.5 of MS-MQMQ; an alias stands for a single queue (2.3).
_FORMS: Final = {
    "DIRECT": re.compile(r"DIRECT=(OS|TCP|HTTPS?|SPX):\S.*", re.I | re.S),
    "PUBLIC": re.compile(rf"PUBLIC={_GUID}", re.I),
    "PRIVATE": re.compile(rf"PRIVATE={_GUID}\\[0-9a-f]{{1,8}}", re.I),
}
_LIST = re.compile(rf"DL=\{{?{_GUID}\}}?(?:@(?P<domain>[^\s@]+))?", re.I)


class RecipientKind(Enum):
    """The kind of entry that a member of a list is, as its class says."""

    QUEUE = "queue"
    ALIAS = "alias"
    LIST = "list"


_KINDS: Final = {
    "msmqqueue": RecipientKind.QUEUE,
    "msmq-custom-recipient": RecipientKind.ALIAS,
    "group": RecipientKind.LIST,
    "msmq-group": RecipientKind.LIST,
}


@dataclass(frozen=True, slots=True)
class AliasTarget:
    """The queue that an alias stands for; ``guid`` is of a public queue, or a queue manager."""

    text: str
    form: str
    guid: Guid | None = None


def recipient_kind(entry: LdapEntry) -> RecipientKind | None:
    """The kind of an entry by its own class, which is the last value; else None."""
    classes = entry.values("objectClass")
    return _KINDS.get(classes[-1].decode("ascii", "replace").lower()) if classes else None


def alias_target(entry: LdapEntry) -> AliasTarget:
    """Reads what an alias stands for; ``BadAttribute`` if that is missing or no format name."""
    text = entry.text(FORMAT_NAME)
    if not text:
        raise BadAttribute(entry.name, FORMAT_NAME, "is missing")
    if len(text) > LONGEST:
        raise BadAttribute(entry.name, FORMAT_NAME, f"has more than {LONGEST} characters")
    for form, pattern in _FORMS.items():
        found = pattern.fullmatch(text)
        if found is not None:
            guid = found.groupdict().get("guid")
            return AliasTarget(text, form, None if guid is None else Guid.parse(guid))
    raise BadAttribute(
        entry.name, FORMAT_NAME, f"{text!r} is no direct, public or private format name"
    )


def public_format_name(queue: Guid) -> str:
    return f"PUBLIC={queue}"


def list_guid(format_name: str) -> Guid | None:
    """The list of ``DL=GUID`` or ``DL=GUID@DOMAIN``, whose domain is not used; else None."""
    found = _LIST.fullmatch(format_name)
    try:
        return None if found is None else Guid.parse(found["guid"])
    except WireError:
        return None
