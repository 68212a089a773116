"""The names that docs/client.md promises are in ``mqis.client``."""

from __future__ import annotations

import builtins
import re

import mqis.client
from tests.docs.documents import text_of


def test_every_exception_of_the_table_can_be_imported() -> None:
    table = re.search(r"^\| exception \|.*?\n\n", text_of("client.md"), re.S | re.M)
    assert table
    names = re.findall(r"`(\w+Error|\w+Fault)`", table[0])
    assert len(names) >= 6
    for name in names:
        found = getattr(builtins, name, None) or getattr(mqis.client, name)
        assert issubclass(found, Exception)
        assert hasattr(builtins, name) or name in mqis.client.__all__
