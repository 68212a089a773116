"""The create and update tables of MS-MQDS 3.1.4.21.8.2 and 8.3.

A client's create and update follow the tables. An event of replication or import (3.1.6.3, 3.1.6.4)
carries what another authority decided: it may set every stored property, and what this server does
not know is skipped.

The tables come in two profiles. STANDARD is the text. OWN_STORE, the default, is a server without
Active Directory behind it: what the standard leaves to Active Directory it takes from the caller.
"""

from __future__ import annotations

from enum import Enum

from mqis.protocol.directory.types.catalogue import ROWS
from mqis.protocol.directory.types.columns import WriteRule


class Profile(Enum):
    """The two versions of the tables."""

    STANDARD = "standard"
    OWN_STORE = "own-store"


def on_update(propid: int, profile: Profile) -> WriteRule:
    """Returns the effect of a client's update on the property."""
    row = ROWS[propid]
    return row.standard_update or row.update if profile is Profile.STANDARD else row.update


def on_create(propid: int, profile: Profile) -> WriteRule:
    """Returns the effect of a client's create on the property."""
    row = ROWS[propid]
    return row.standard_create or row.create if profile is Profile.STANDARD else row.create
