"""The benchmark of discovery: every request has its own reply, and the echo stands beside it."""

from __future__ import annotations

import socket
import sys
from subprocess import Popen
from threading import Thread

import pytest

from bench.discovery import Asker
from bench.load import LoadError
from bench.processes import Served
from mqis.wire.guid import Guid

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="choosing the source of each datagram is Linux's"
)


@pytest.mark.parametrize("wrong", [b"x" * 16, b""], ids=["another number", "another size"])
def test_a_wrong_reply_ends_the_run(wrong: bytes) -> None:
    """Nothing that is no answer is counted."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]

        def answer() -> None:
            data, source = server.recvfrom(2048)
            server.sendto(data[:4] + (wrong or data[20:36]) + bytes(len(wrong)), source)

        thread = Thread(target=answer)
        thread.start()
        with Popen(["sleep", "60"], text=True) as process:
            asker = Asker(Served(process, port), Guid.NULL, 4, 36)
            with pytest.raises(LoadError, match="bytes that answer no request"):
                asker.load(0.1)
            asker.close()
            process.kill()
        thread.join()
