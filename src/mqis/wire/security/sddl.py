"""Security Descriptor Description Language (MS-DTYP 2.5.1): descriptors as text.

    O:BAG:SYD:P(A;OICI;GA;;;BA)(A;;0x20020;;;WD)S:(AU;FA;SD;;;WD)

Written form: rights by name if generic and standard names express the mask exactly, otherwise one
hexadecimal number, because the remaining names (CC, FR, KA, ...) are about directories, files and
registry keys and would mislead about a queue. All names and numbers can be read.

Beyond the grammar of 2.5.1.1, but written by Windows: NO_ACCESS_CONTROL for a NULL list, and the
ACE flag CR for bit 0x20. Conditional and other opaque ACEs have no text here. Aliases that depend
on a domain (DA, DU, ...) are refused, since the domain is not known here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from mqis.wire.guid import Guid
from mqis.wire.security.acl import (
    OBJECT_TYPES,
    Ace,
    AceFlags,
    AceType,
    Acl,
    ObjectAce,
    OpaqueAce,
    PlainAce,
)
from mqis.wire.security.descriptor import Control, SecurityDescriptor
from mqis.wire.security.sid import Sid

NO_ACCESS_CONTROL = "NO_ACCESS_CONTROL"

_ALIASES = {
    alias: Sid.parse(text)
    for alias, text in (
        ("WD", "S-1-1-0"),
        ("CO", "S-1-3-0"),
        ("CG", "S-1-3-1"),
        ("OW", "S-1-3-4"),
        ("NU", "S-1-5-2"),
        ("IU", "S-1-5-4"),
        ("SU", "S-1-5-6"),
        ("AN", "S-1-5-7"),
        ("ED", "S-1-5-9"),
        ("PS", "S-1-5-10"),
        ("AU", "S-1-5-11"),
        ("RC", "S-1-5-12"),
        ("SY", "S-1-5-18"),
        ("LS", "S-1-5-19"),
        ("NS", "S-1-5-20"),
        ("BA", "S-1-5-32-544"),
        ("BU", "S-1-5-32-545"),
        ("BG", "S-1-5-32-546"),
        ("PU", "S-1-5-32-547"),
        ("AO", "S-1-5-32-548"),
        ("SO", "S-1-5-32-549"),
        ("PO", "S-1-5-32-550"),
        ("BO", "S-1-5-32-551"),
        ("RE", "S-1-5-32-552"),
        ("RU", "S-1-5-32-554"),
        ("RD", "S-1-5-32-555"),
        ("NO", "S-1-5-32-556"),
        ("MU", "S-1-5-32-558"),
        ("LU", "S-1-5-32-559"),
        ("IS", "S-1-5-32-568"),
        ("CY", "S-1-5-32-569"),
        ("ER", "S-1-5-32-573"),
        ("CD", "S-1-5-32-574"),
        ("RA", "S-1-5-32-575"),
        ("ES", "S-1-5-32-576"),
        ("MS", "S-1-5-32-577"),
        ("HA", "S-1-5-32-578"),
        ("AA", "S-1-5-32-579"),
        ("RM", "S-1-5-32-580"),
        ("WR", "S-1-5-33"),
        ("UD", "S-1-5-84-0-0-0-0-0"),
        ("AC", "S-1-15-2-1"),
        ("LW", "S-1-16-4096"),
        ("ME", "S-1-16-8192"),
        ("MP", "S-1-16-8448"),
        ("HI", "S-1-16-12288"),
        ("SI", "S-1-16-16384"),
    )
}
_ALIAS_OF = {sid: alias for alias, sid in _ALIASES.items()}
_DOMAIN_ALIASES = frozenset(
    ("DA", "DG", "DU", "DD", "DC", "LA", "LG", "SA", "CA", "RS", "EA", "PA", "RO", "CN")
)

_ACE_TYPES = {
    "A": AceType.ACCESS_ALLOWED,
    "D": AceType.ACCESS_DENIED,
    "AU": AceType.SYSTEM_AUDIT,
    "OA": AceType.ACCESS_ALLOWED_OBJECT,
    "OD": AceType.ACCESS_DENIED_OBJECT,
    "OU": AceType.SYSTEM_AUDIT_OBJECT,
}
_ACE_TYPE_TEXT: dict[int, str] = {number: text for text, number in _ACE_TYPES.items()}

_ACE_FLAGS = {
    "OI": 0x01,
    "CI": 0x02,
    "NP": 0x04,
    "IO": 0x08,
    "ID": 0x10,
    "CR": 0x20,
    "SA": 0x40,
    "FA": 0x80,
}

#: The names that are also written, in that order.
_COMMON_RIGHTS = {
    "GA": 0x1000_0000,
    "GR": 0x8000_0000,
    "GW": 0x4000_0000,
    "GX": 0x2000_0000,
    "RC": 0x0002_0000,
    "SD": 0x0001_0000,
    "WD": 0x0004_0000,
    "WO": 0x0008_0000,
}
_COMMON_MASK = sum(_COMMON_RIGHTS.values())
_RIGHTS = _COMMON_RIGHTS | {
    "CC": 0x0001,
    "DC": 0x0002,
    "LC": 0x0004,
    "SW": 0x0008,
    "RP": 0x0010,
    "WP": 0x0020,
    "DT": 0x0040,
    "LO": 0x0080,
    "CR": 0x0100,
    "FA": 0x001F_01FF,
    "FX": 0x0012_00A0,
    "FW": 0x0012_0116,
    "FR": 0x0012_0089,
    "KA": 0x000F_003F,
    "KR": 0x0002_0019,
    "KX": 0x0002_0019,
    "KW": 0x0002_0006,
}


@dataclass(frozen=True, slots=True)
class _ListBits:
    """The Control bits for the flags of one list."""

    present: Control
    protected: Control
    computed: Control
    inherited: Control

    @property
    def flags(self) -> dict[str, Control]:
        return {"P": self.protected, "AR": self.computed, "AI": self.inherited}


_DACL_BITS = _ListBits(
    Control.DACL_PRESENT,
    Control.DACL_PROTECTED,
    Control.DACL_COMPUTED_INHERITANCE_REQUIRED,
    Control.DACL_AUTO_INHERITED,
)
_SACL_BITS = _ListBits(
    Control.SACL_PRESENT,
    Control.SACL_PROTECTED,
    Control.SACL_COMPUTED_INHERITANCE_REQUIRED,
    Control.SACL_AUTO_INHERITED,
)


# --- writing --------------------------------------------------------------------------------------


def sddl_if_any(sd: SecurityDescriptor) -> str | None:
    """Formats ``sd``; None if it has entries that SDDL cannot express."""
    try:
        return to_sddl(sd)
    except ValueError:
        return None


def to_sddl(sd: SecurityDescriptor) -> str:
    """Formats ``sd``; ``ValueError`` if an ACE is opaque.

    ``parse_sddl`` restores all parts. The text cannot express the defaulted, trusted and
    server bits, the resource manager's byte, and flags of a list that is missing.
    """
    text = ""
    if sd.owner is not None:
        text += "O:" + sid_text(sd.owner)
    if sd.group is not None:
        text += "G:" + sid_text(sd.group)
    if sd.control & Control.DACL_PRESENT:
        text += "D:" + _list_text(sd.dacl, sd.control, _DACL_BITS)
    if sd.control & Control.SACL_PRESENT:
        text += "S:" + _list_text(sd.sacl, sd.control, _SACL_BITS)
    return text


def sid_text(sid: Sid) -> str:
    """The two-letter alias of a SID, or its normal text."""
    return _ALIAS_OF.get(sid) or str(sid)


def _list_text(acl: Acl | None, control: Control, bits: _ListBits) -> str:
    flags = "".join(word for word, bit in bits.flags.items() if control & bit)
    if acl is None:
        return flags + NO_ACCESS_CONTROL
    return flags + "".join(map(_ace_text, acl.aces))


def _ace_text(ace: Ace) -> str:
    if isinstance(ace, OpaqueAce):
        raise ValueError(f"an ACE of type 0x{ace.type:02x} cannot be written in SDDL")
    object_type = inherited = ""
    if isinstance(ace, ObjectAce):
        object_type = "" if ace.object_type is None else str(ace.object_type)
        inherited = "" if ace.inherited_object_type is None else str(ace.inherited_object_type)
    flags = "".join(word for word, bit in _ACE_FLAGS.items() if ace.flags & bit)
    fields = (
        _ACE_TYPE_TEXT[ace.type],
        flags,
        rights_text(ace.mask),
        object_type,
        inherited,
        sid_text(ace.sid),
    )
    return f"({';'.join(fields)})"


def rights_text(mask: int) -> str:
    if mask == 0 or mask & ~_COMMON_MASK:
        return f"0x{mask:x}"
    return "".join(word for word, bit in _COMMON_RIGHTS.items() if mask & bit)


# --- reading --------------------------------------------------------------------------------------

# After twelve hexadecimal digits a D can only begin "D:"; a shorter number needs a hyphen after it.
_SID = re.compile(
    r"S-1-(?:0x(?:[0-9a-f]{12}|[0-9a-f]{1,11}(?=-))|[0-9]{1,10})(?:-[0-9]{1,10})*", re.I
)
_GUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.I)
_NUMBER = re.compile(r"0x[0-9a-f]{1,16}|0[0-7]+|0|[1-9][0-9]{0,19}", re.I)
_WORD = re.compile(r"[A-Z]{2}")
_ACE_TYPE = re.compile(r"[A-Z]{1,2}")


def parse_sddl(text: str) -> SecurityDescriptor:
    """Parses a descriptor; a ``ValueError`` names the position of a mistake."""
    return _Parser(text).descriptor()


class _Parser:
    __slots__ = ("_at", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def descriptor(self) -> SecurityDescriptor:
        sids: dict[str, Sid] = {}
        lists: dict[str, Acl | None] = {}
        control = Control(0)
        while self._at < len(self._text):
            start = self._at
            section = self._text[start]
            if section not in "OGDS" or self._text[start + 1 : start + 2] != ":":
                raise self._error("one of O: G: D: S: is expected")
            if section in sids or section in lists:
                raise self._error(f"{section}: is given twice")
            self._at += 2
            if section in "OG":
                sids[section] = self._sid()
            else:
                lists[section], bits = self._list(_DACL_BITS if section == "D" else _SACL_BITS)
                control |= bits
        return SecurityDescriptor(
            sids.get("O"), sids.get("G"), lists.get("D"), lists.get("S"), control
        )

    def _error(self, reason: str, at: int | None = None) -> ValueError:
        return ValueError(f"SDDL: {reason} at position {self._at if at is None else at}")

    def _match(self, pattern: re.Pattern[str]) -> str | None:
        match = pattern.match(self._text, self._at)
        if match is None:
            return None
        self._at = match.end()
        return match.group()

    def _accept(self, word: str) -> bool:
        found = self._text.startswith(word, self._at)
        self._at += len(word) if found else 0
        return found

    def _expect(self, word: str) -> None:
        if not self._accept(word):
            raise self._error(f"{word!r} is expected")

    def _sid(self) -> Sid:
        start = self._at
        text = self._match(_SID)
        if text is not None:
            try:
                return Sid.parse(text)
            except ValueError as error:
                raise self._error(str(error), start) from None
        alias = self._match(_WORD)
        if alias in _DOMAIN_ALIASES:
            raise self._error(f"{alias} depends on a domain; write the SID itself", start)
        sid = _ALIASES.get(alias) if alias is not None else None
        if sid is None:
            raise self._error("a SID or its alias is expected", start)
        return sid

    def _list(self, bits: _ListBits) -> tuple[Acl | None, Control]:
        start = self._at
        control = bits.present
        while flag := next(filter(self._accept, bits.flags), None):
            control |= bits.flags[flag]
        if self._accept(NO_ACCESS_CONTROL):
            return None, control
        aces: list[Ace] = []
        while self._accept("("):
            aces.append(self._ace())
        try:
            return Acl(tuple(aces)), control
        except ValueError as error:  # more ACEs than a list can hold
            raise self._error(str(error), start) from None

    def _ace(self) -> Ace:
        start = self._at
        ace_type = _ACE_TYPES.get(self._match(_ACE_TYPE) or "")
        if ace_type is None:
            raise self._error(f"an ACE type ({', '.join(_ACE_TYPES)}) is expected", start)
        self._expect(";")
        flags = AceFlags(self._words(_ACE_FLAGS, "ACE flag"))
        self._expect(";")
        mask = self._rights()
        self._expect(";")
        guids_at = self._at
        object_type = self._guid()
        self._expect(";")
        inherited = self._guid()
        self._expect(";")
        sid = self._sid()
        self._expect(")")
        if ace_type in OBJECT_TYPES:
            return ObjectAce(ace_type, mask, sid, object_type, inherited, flags)
        if object_type is not None or inherited is not None:
            raise self._error("only OA, OD and OU have GUIDs", guids_at)
        return PlainAce(ace_type, mask, sid, flags)

    def _words(self, table: dict[str, int], what: str) -> int:
        bits = 0
        while (start := self._at) < len(self._text) and self._text[start] != ";":
            word = self._match(_WORD)
            if word not in table:
                raise self._error(f"{what} is unknown", start)
            bits |= table[word]
        return bits

    def _rights(self) -> int:
        start = self._at
        number = self._match(_NUMBER)
        if number is None:
            return self._words(_RIGHTS, "right")
        octal = len(number) > 1 and number[0] == "0" and number.isdigit()
        mask = int(number, 8) if octal else int(number, 0)
        if mask >= 1 << 32:
            raise self._error("an access mask has 32 bits", start)
        return mask

    def _guid(self) -> Guid | None:
        text = self._match(_GUID)
        return None if text is None else Guid.parse(text)
