"""One row of an object type: everything that this directory knows of one property.

``catalogue`` derives every table from the rows. To add a property, add its line to
docs/spec/mqds-properties.csv (number, type of object, variant type), run
tools/generate_catalogue.py, and write one row in the module of its object type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Protocol

from mqis.protocol.directory.types.ldap import Ldap, Unkept
from mqis.protocol.directory.types.row_columns import PropertyRole, Takes, ValueMeaning, WriteRule
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import PROPERTIES
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propertybag import Properties
from mqis.wire.propvariant import PropVariant, Value, VarType
from mqis.wire.seqnum import SequenceNumber


class StoredObject(Protocol):
    """An object as computed properties see it (``objects.DirectoryObject``)."""

    @property
    def id(self) -> Guid: ...

    @property
    def partition(self) -> Guid: ...

    @property
    def seq(self) -> SequenceNumber: ...

    @property
    def path(self) -> str | None: ...

    def value(self, propid: int, /) -> Value: ...


class ObjectLookup(Protocol):
    """The other objects of the directory as computed properties see them (``ports.View``)."""

    def get(self, object_type: ObjectType, id: Guid, /) -> StoredObject | None: ...  # noqa: A002


#: Computes the value that a property shows; None if it shows none.
Compute = Callable[[StoredObject, ObjectLookup], Value]
#: Returns the value to store for a supplied one, or raises ``ValueError`` with the reason.
Check = Callable[[Value], Value]
#: Returns the stored properties that a supplied value changes. The arguments are the checked value,
#: the properties stored so far, and everything that the call supplies.
Store = Callable[[Value, Properties, Properties], dict[int, PropVariant]]


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationPlace:
    """The place of a property in the change notifications of MS-MQCN 3.3.5.2; 0 is none."""

    #: In the notification of a new queue.
    created: int = 0
    #: In the notification of an update, if the update set the property.
    changed: int = 0
    #: In every notification of an update, before those that were set.
    always: int = 0


@dataclass(frozen=True, slots=True)
class PropertyRow:
    """One property. The first four columns have no default: each of them is a decision."""

    id: PropId
    #: Effect of a client's create and of its update. On a server without Active Directory behind
    #: it, the caller decides what the text leaves to Active Directory.
    create: WriteRule
    update: WriteRule
    #: The right that setting it takes. ``powers`` explains, docs/security.md has the table.
    takes: Takes
    _: KW_ONLY

    # --- reading ---
    #: A client may read it (MS-MQDS 3.1.4.21.8.1).
    readable: bool = True
    #: Shown instead of a stored value.
    computed: Compute | None = None
    #: Stored although what it shows is computed.
    also_stored: bool = False
    #: Shown while nobody has set it, where a create stores no default.
    unset: Value = None
    #: S_DSGetPropsEx gives it (MS-MQDS 3.3.4.2).
    extended: bool = False

    # --- writing ---
    #: Stored by a create that does not supply it (MS-MQDS 3.1.4.21.8.3).
    default: Value = None
    #: A create has to supply it (MS-MQDS 3.1.4.4), under this or another name.
    required: bool = False
    #: A client's create cannot supply this property as well.
    excludes: PropId | None = None
    #: Another name of this stored property, under which the value is kept.
    alias_of: PropId | None = None
    #: Stores the value, where that is more than to keep it under the property's own number.
    store: Store | None = None
    #: Accepted, and dropped: peers fill it with zero (E68).
    reserved: bool = False

    # --- values ---
    meaning: ValueMeaning = ValueMeaning.PLAIN
    #: The names of the numbers, for ``ValueMeaning.WORD``.
    words: Mapping[int, str] | None = None
    #: Checks a supplied value, where the meaning is not enough.
    check: Check | None = None
    #: The type of the objects that its GUIDs identify.
    refers_to: ObjectType | None = None

    # --- what it is for ---
    role: PropertyRole | None = None
    #: Given when the object is made, and never again: no peer may change it.
    lasting: bool = False
    #: A server announces it of its own machine when it starts.
    announced: bool = False
    #: Identifies the object that owns this one, so that stores find the object by it.
    names_owner: bool = False
    #: Every store has an index on it; a list is indexed element by element.
    indexed: bool = False

    # --- replication and notification ---
    #: The place in the table of what travels (MC-MQDSRP 3.2.7.8); 0 stays with the authority.
    #: The first of a type tells the type of a change (E59).
    replicated: int = 0
    #: The property that travels when this stored one changes, where the row does not say so itself.
    travels_as: PropId | None = None
    notified: NotificationPlace = NotificationPlace()

    # --- Active Directory ---
    #: Where it is kept there. None: nowhere, and it shows no value; or it is made of several
    #: attributes (``activedirectory.rows``).
    ldap: Ldap | Unkept | None = None

    @property
    def object_type(self) -> ObjectType:
        return PROPERTIES[self.id].object_type

    @property
    def vt(self) -> VarType:
        return PROPERTIES[self.id].vt

    @property
    def filler(self) -> bool:
        """Returns whether replication sends zero for it and drops what comes (E68)."""
        return self.reserved and self.replicated > 0

    @property
    def stored(self) -> bool:
        """Returns whether a supplied value is kept, under this number or the one it stands for."""
        return not self.reserved and (self.store is None or self.also_stored)

    def variant(self, value: Value) -> PropVariant | None:
        """Returns the value as one of the property's variant type; None for none."""
        return None if value is None else PropVariant(self.vt, value)
