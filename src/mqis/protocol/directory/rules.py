"""The create and update tables of MS-MQDS 3.1.4.21.8.2 and 8.3.

A client's create and update follow the tables. An event of replication or import (3.1.6.3, 3.1.6.4)
carries what another authority decided: it may set every stored property, and what this server does
not know is skipped.

The text's tables are those of a server over Active Directory. This server has a store of its own:
what the text leaves to Active Directory it takes from the caller.
"""

from __future__ import annotations

from mqis.protocol.directory.types.catalogue import ROWS
from mqis.protocol.directory.types.columns import WriteRule


def on_update(propid: int) -> WriteRule:
    """Returns the effect of a client's update on the property."""
    return ROWS[propid].update


def on_create(propid: int) -> WriteRule:
    """Returns the effect of a client's create on the property."""
    return ROWS[propid].create
