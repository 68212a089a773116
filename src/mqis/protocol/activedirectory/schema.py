"""The classes and attributes that a forest's schema needs for Message Queuing (MS-MQDSSM 2.4)."""

from __future__ import annotations

from mqis.protocol.activedirectory.forest import LDAP_CLASSES, SETTINGS_CLASS, Forest
from mqis.protocol.activedirectory.rows import ATTRIBUTE_ROWS
from mqis.protocol.activedirectory.servers import MachineServices
from mqis.protocol.ldap.ports import LdapQuery
from mqis.wire.guid import Guid
from mqis.wire.ldap.codes import SearchScope
from mqis.wire.ldap.filters import Equality, Or

#: Both classes and attributes are entries of the schema, called by this attribute.
DISPLAY_NAME = "lDAPDisplayName"


def needed_names() -> tuple[str, ...]:
    """The names of all classes and attributes that are read or written."""
    rows = ATTRIBUTE_ROWS.values()
    read = {name for row in rows for name in (*row.attributes, *row.computer_attributes)}
    settings = {name for name, _ in MachineServices().settings_attributes(Guid.NULL)}
    return tuple(sorted({*LDAP_CLASSES.values(), SETTINGS_CLASS, *read, *settings}))


def schema_query(forest: Forest) -> LdapQuery:
    """Finds those of the needed names that the schema has."""
    return LdapQuery(
        str(forest.schema),
        SearchScope.ONE_LEVEL,
        Or(tuple(Equality(DISPLAY_NAME, name.encode()) for name in needed_names())),
        (DISPLAY_NAME,),
    )
