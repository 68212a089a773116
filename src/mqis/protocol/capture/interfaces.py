"""The RPC interfaces whose calls are decoded. To add one, add a line."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from mqis.protocol.capture.explaining import Explain, directory, management, mapper, partner
from mqis.wire.cmpo.ixnremote import IXN_REMOTE
from mqis.wire.mqds.dscomm import DSCOMM
from mqis.wire.mqds.dscomm2 import DSCOMM2
from mqis.wire.rpc.epmapper import EPMAPPER
from mqis.wire.rpc.mgmt import MGMT
from mqis.wire.rpc.operation import InterfaceDescription
from mqis.wire.rpc.syntax import SyntaxId

#: Names of all interfaces, for descriptions of the endpoint mapper's calls.
_NAMES: dict[SyntaxId, str] = {}


class InterfaceProtocol(NamedTuple):
    description: InterfaceDescription
    explain: Explain

    @property
    def name(self) -> str:
        return self.description.name.lower()


INTERFACES: tuple[InterfaceProtocol, ...] = (
    InterfaceProtocol(DSCOMM, directory),
    InterfaceProtocol(DSCOMM2, directory),
    InterfaceProtocol(IXN_REMOTE, partner),
    InterfaceProtocol(EPMAPPER, partial(mapper, names=_NAMES)),
    InterfaceProtocol(MGMT, management),
)

BY_SYNTAX: dict[SyntaxId, InterfaceProtocol] = {
    each.description.syntax: each for each in INTERFACES
}
_NAMES.update({syntax: each.description.name for syntax, each in BY_SYNTAX.items()})
