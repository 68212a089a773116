"""The server for Samba's raw protocol tests, at port 135 of a separate loopback address.

The tests' port is fixed, so this needs root or CAP_NET_BIND_SERVICE, and an address where the port
is free. It offers the interfaces that the tests bind: the endpoint mapper, management, and the one
call of netlogon that they make. It prints a line when it listens and ends when its input ends.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys

import uvloop

from mqis.protocol.rpc.endpoint_map import EndpointRegistry, Interface, Registration
from mqis.protocol.rpc.faults import FaultStatus, RpcFault
from mqis.protocol.rpc.server_endpoint import RpcLimits
from mqis.runtime.authentication.acceptor import PyspnegoAuthenticator
from mqis.runtime.authentication.account import Account, MemoryAccounts, nt_hash
from mqis.runtime.entropy import SystemEntropy
from mqis.runtime.rpc.builtin import EndpointMapperService, ManagementService
from mqis.runtime.rpc.incoming import IncomingCall
from mqis.runtime.rpc.rpc_server import RpcServer
from mqis.wire.guid import Guid
from mqis.wire.rpc import epmapper, mgmt
from mqis.wire.rpc.interfaces import SyntaxId
from mqis.wire.security.sid import Sid

PORT = 135
NETLOGON = SyntaxId(Guid.parse("12345678-1234-abcd-ef00-01234567cffb"), 1)
#: NetrServerReqChallenge; the tests accept any answer that is not a fault.
REQ_CHALLENGE = 4


class Netlogon:
    """The part of netlogon that tests need which use any service with authentication."""

    interface = Interface("netlogon", NETLOGON, 49)

    def dispatch(self, incoming: IncomingCall) -> bytes:
        if incoming.opnum != REQ_CHALLENGE:
            raise RpcFault(FaultStatus.OP_RNG_ERROR)
        return bytes(8) + bytes(4)  # a challenge, and success


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address")
    parser.add_argument("--server", default="LAB")
    parser.add_argument("--domain", default="DOM")
    parser.add_argument("--user", default="user")
    parser.add_argument("--password", default="secret")
    parser.add_argument("--max-security-contexts", type=int, default=20)
    parser.add_argument("--keytab", help="offers Kerberos with these keys")
    return parser.parse_args()


async def serve(options: argparse.Namespace) -> None:
    sid = Sid.parse("S-1-5-21-1-2-3-1000")
    account = Account(options.domain, options.user, sid, nt_hash(options.password))
    authenticator = PyspnegoAuthenticator(
        MemoryAccounts([account]), options.server, options.domain, keytab=options.keytab
    )
    registry = EndpointRegistry()
    management = ManagementService(lambda: server.endpoint)
    server = RpcServer(
        [EndpointMapperService(registry), management, Netlogon()],
        SystemEntropy(),
        authenticator=authenticator,
        limits=RpcLimits(max_security_contexts=options.max_security_contexts),
    )
    async with server:
        await server.listen(options.address, PORT)
        for syntax in (NETLOGON, epmapper.SYNTAX, mgmt.SYNTAX):
            registry.insert(Registration(syntax, PORT, options.address))
        print(f"listening at {options.address} port {PORT}", flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


def main() -> int:
    options = arguments()
    try:
        uvloop.run(serve(options))
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        print(f"cannot listen at {options.address} port {PORT}: {reason}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
