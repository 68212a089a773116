"""SECURITY_INFORMATION (MS-DTYP 2.4.7, MS-MQDS 3.1.4.11): the parts that a call selects."""

from __future__ import annotations

from enum import IntFlag

from mqis.wire.security.descriptor import Control, SecurityDescriptor


class SecurityInformation(IntFlag):
    """Parts of a descriptor, or one of two public keys that MS-MQDS puts behind the same calls.

    The key bits are PROTECTED_DACL and PROTECTED_SACL in MS-DTYP; here they are never that.
    """

    OWNER = 0x0000_0001
    GROUP = 0x0000_0002
    DACL = 0x0000_0004
    SACL = 0x0000_0008
    KEYX_PUBLIC_KEY = 0x4000_0000
    SIGN_PUBLIC_KEY = 0x8000_0000

    PARTS = OWNER | GROUP | DACL | SACL

    @classmethod
    def from_wire(cls, number: int) -> SecurityInformation:
        """Accepts exactly one key, or one part or more; raises ValueError for any other number."""
        key = number in (cls.KEYX_PUBLIC_KEY, cls.SIGN_PUBLIC_KEY)
        if not key and (number == 0 or number & ~int(cls.PARTS)):
            raise ValueError(f"0x{number:08x} selects neither parts of a descriptor nor one key")
        return cls(number)


#: The Control bits that belong to a part and are copied with it. The resource manager's byte
#: belongs to the object that the descriptor is attached to.
_BITS = {
    SecurityInformation.OWNER: Control.OWNER_DEFAULTED,
    SecurityInformation.GROUP: Control.GROUP_DEFAULTED,
    SecurityInformation.DACL: Control.DACL_PRESENT
    | Control.DACL_DEFAULTED
    | Control.DACL_TRUSTED
    | Control.SERVER_SECURITY
    | Control.DACL_COMPUTED_INHERITANCE_REQUIRED
    | Control.DACL_AUTO_INHERITED
    | Control.DACL_PROTECTED,
    SecurityInformation.SACL: Control.SACL_PRESENT
    | Control.SACL_DEFAULTED
    | Control.SACL_COMPUTED_INHERITANCE_REQUIRED
    | Control.SACL_AUTO_INHERITED
    | Control.SACL_PROTECTED,
}


def extract(sd: SecurityDescriptor, information: SecurityInformation) -> SecurityDescriptor:
    """``sd`` reduced to the selected parts."""
    return merge(SecurityDescriptor.EMPTY, sd, information)


def merge(
    stored: SecurityDescriptor, incoming: SecurityDescriptor, information: SecurityInformation
) -> SecurityDescriptor:
    """``stored`` with the selected parts taken from ``incoming``.

    A selected part that ``incoming`` lacks is removed: to select the SACL and send none removes
    it. The caller decides what a missing owner or DACL means for an object.
    """
    if information & ~SecurityInformation.PARTS:
        raise ValueError(f"0x{int(information):08x} selects more than parts of a descriptor")
    bits = Control(0)
    for part, belonging in _BITS.items():
        if information & part:
            bits |= belonging

    def source(part: SecurityInformation) -> SecurityDescriptor:
        return incoming if information & part else stored

    return SecurityDescriptor(
        owner=source(SecurityInformation.OWNER).owner,
        group=source(SecurityInformation.GROUP).group,
        dacl=source(SecurityInformation.DACL).dacl,
        sacl=source(SecurityInformation.SACL).sacl,
        control=(stored.control & ~bits) | (incoming.control & bits),
        rm_control=stored.rm_control,
    )
