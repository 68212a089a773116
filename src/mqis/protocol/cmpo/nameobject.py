"""Name objects: a partner's identity and host (3.2.1.4), and the rank of two partners (1.3.1)."""

from __future__ import annotations

from dataclasses import dataclass

from mqis.wire.cmpo.codes import ComProtocol, SessionRank
from mqis.wire.guid import Guid

MAX_HOST_NAME = 15
#: Characters that a computer's name must not contain (MS-DTYP, NetBIOS).
_FORBIDDEN = frozenset('"/\\:|<>*?')


@dataclass(frozen=True, slots=True, eq=False)
class NameObject:
    """A partner. Two are equal if their CIDs and, in any letter case, hosts are (3.2.1.4.1)."""

    host_name: str
    cid: Guid
    protocols: ComProtocol = ComProtocol.IP_TCP

    def __post_init__(self) -> None:
        if not is_host_name(self.host_name):
            raise ValueError(f"{self.host_name!r} is no NetBIOS name of 1 to 15 characters")
        if not self.cid:
            raise ValueError("the null GUID is no contact identifier")

    @property
    def _key(self) -> tuple[Guid, str]:
        return self.cid, self.host_name.upper()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NameObject) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __str__(self) -> str:
        return f"{self.host_name}/{self.cid}"

    @classmethod
    def parse(cls, text: str) -> NameObject:
        """Parses ``HOST/CID``, as ``str`` writes it."""
        host, slash, cid = text.partition("/")
        if not slash:
            raise ValueError(f"{text!r} is not of the form HOST/CID")
        return cls(host, Guid.parse(cid))


def is_host_name(text: str) -> bool:
    """Returns whether a text is a valid computer name."""
    units = len(text.encode("utf-16-le", "surrogatepass")) // 2
    plain = text.isprintable() and text == text.strip() and not _FORBIDDEN & set(text)
    return 1 <= units <= MAX_HOST_NAME and plain


def rank_of(here: Guid, there: Guid) -> SessionRank:
    """The rank of ``here`` in a session with ``there``: the greater CID is primary.

    Greater as C706 orders UUIDs, which is how their texts sort; the bytes of the packet form sort
    differently (E-CMPO-02). Partners of the same CID have no rank.
    """
    if here == there:
        raise ValueError(f"both partners have the contact identifier {here}")
    return SessionRank.PRIMARY if here > there else SessionRank.SECONDARY
