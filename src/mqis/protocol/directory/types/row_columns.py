"""The words that fill the columns of a property's row."""

from __future__ import annotations

from enum import Enum

#: The quota that no message is refused for.
UNLIMITED = 0xFFFFFFFF


class WriteRule(Enum):
    """Effect of a table of MS-MQDS 3.1.4.21.8 on a value that a client supplies."""

    APPLY = "apply"  # the value is taken, perhaps after a conversion
    IGNORE = "ignore"  # accepted without effect
    INVALID = "invalid"  # the whole call fails
    UNLISTED = "unlisted"  # in no table: a create ignores it, an update fails


APPLY, IGNORE = WriteRule.APPLY, WriteRule.IGNORE
INVALID, UNLISTED = WriteRule.INVALID, WriteRule.UNLISTED


class PropertyRole(Enum):
    """The part that a property plays in every object of its type. Each type has it at most once."""

    #: The object's identifier (MS-MQDS 3.1.4.21.3). The object keeps it outside its properties.
    IDENTIFIER = "identifier"
    #: The name that addresses the object (MS-MQDS 3.1.4.21.4). Users and links have none (2.2.9).
    NAME = "name"
    #: The sequence number of the last change, kept outside the properties.
    SEQUENCE = "sequence"
    #: The partition that the object lies in, kept outside the properties.
    PARTITION = "partition"
    #: The stored security descriptor. Users and links have none.
    SECURITY = "security"
    #: Seconds since 1970, given by the server that creates the object.
    CREATE_TIME = "create time"
    #: Seconds since 1970, given by the server with each change.
    MODIFY_TIME = "modify time"


class ValueMeaning(Enum):
    """The meaning of a value beyond its variant type.

    It decides how a supplied value is checked (``value_checks``) and how people read and write the
    value (``presentation.rendering``).
    """

    #: Nothing beyond the variant type.
    PLAIN = "plain"
    #: 1 is true, anything else false.
    FLAG = "flag"
    #: One number of those that ``property_words`` names.
    WORD = "word"
    #: Seconds since 1970.
    TIME = "time"
    #: Kilobytes; 0xFFFFFFFF is unlimited.
    QUOTA = "quota"
    #: The bits of ``service.ServiceBits``.
    SERVICE = "service"
    #: A self-relative security descriptor.
    DESCRIPTOR = "descriptor"
    #: A security identifier.
    SID = "sid"
    #: A list of public keys (MQDSPUBLICKEYS).
    KEYS = "keys"
    #: A list of certificates (MQUSERSIGNCERTS), or one bare certificate.
    CERTIFICATES = "certificates"
    #: A list of network addresses (TA_ADDRESS).
    ADDRESSES = "addresses"
    #: A sequence number, most significant byte first.
    SEQUENCE = "sequence"


class Takes(Enum):
    """The right that a property takes beside the right to write its object."""

    NOTHING = "no more than the right to create or write the object, or nobody writes it"
    ROLE = (
        "CREATE_BSC (controller) or CREATE_FRS (router, dependent-client server) at every site of "
        "the machine; SET_ENTERPRISE_PROPERTIES for a primary controller"
    )
    SERVER = "what the machine's role takes, if the machine is a server; nothing more if it is none"
    PLACE = "the right to create such an object at its new place"
    SITE = "SET_SITE_PROPERTIES"
    ENTERPRISE = "SET_ENTERPRISE_PROPERTIES"
    PERMISSIONS = "WRITE_DAC for the list, WRITE_OWNER for the owner; audit lists: administrators"
    SELF = "to be the user of that SID, or SET_ENTERPRISE_PROPERTIES; never an anonymous caller"
    NOBODY = "no client sets it: the server does"
