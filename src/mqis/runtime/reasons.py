"""The reason of a system error, without the address that asyncio writes into it."""

from __future__ import annotations

import os
import re
import socket

_NUMBER = re.compile(r"\[Errno (\d+)\]")


def reason_of(error: OSError) -> str:
    """Returns ``Connection refused`` for ``[Errno 111] Connect call failed ('127.0.0.1', 1)``.

    The caller names the address itself, and an error names it once. For a host with several
    addresses asyncio joins the texts of all attempts into one error without a number.
    """
    if isinstance(error, socket.gaierror):
        return error.strerror or str(error)
    numbers = [error.errno] if error.errno else map(int, _NUMBER.findall(str(error)))
    texts = dict.fromkeys(os.strerror(number) for number in numbers)
    return ", ".join(texts) or str(error) or type(error).__name__
