"""A domain controller in a process of its own, which is killed in the middle of an import.

    python -m tests.admin.activedirectory.dying_server SEARCHES

It prints its URL. When so many searches have come it dies as by kill -9; 0 lets it live.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys

from mqis.testing.ldap import ScriptedAnswer
from mqis.wire.ldap.messages import LdapMessage
from mqis.wire.ldap.requests import SearchRequest
from tests.admin.test_online_import import domain

QUEUES = 25


async def serve(searches: int) -> None:
    server = domain(QUEUES)
    server.page_limit = 10
    seen = 0

    def die(message: LdapMessage) -> ScriptedAnswer | None:
        nonlocal seen
        seen += isinstance(message.operation, SearchRequest)
        if seen == searches:
            os.kill(os.getpid(), signal.SIGKILL)
        return None

    server.on_message = die
    async with server:
        print(server.url, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
