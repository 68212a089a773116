"""The example of docs/oletx.md runs, and the propagation is that of MS-CMP section 4."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from pathlib import Path

import pytest

from examples.oletx import __main__ as example
from examples.oletx.propagate import (
    CONNTYPE_PARTNERTM_PROPAGATE,
    IsolationLevel,
    Mtag,
    Propagate,
    Subordinate,
    propagate,
)
from mqis.protocol.cmpo.nameobject import NameObject
from mqis.wire.errors import WireError
from tests.runtime.oletx.endpoints import couple
from tests.waiting import DEADLINE_S, in_time, run
from tests.wire.cmpo.stubs import STUBS

ROOT = Path(__file__).resolve().parents[3]
#: The boxcar of 4.1.2 behind handle, counts and size.
BOXCAR = STUBS["SendReceive request"][32:]


def test_the_first_example_of_the_document_runs() -> None:
    text = (ROOT / "docs" / "oletx.md").read_text(encoding="utf-8")
    block = re.search(r"^```python\n(.*?)^```", text, re.M | re.S)
    assert block is not None
    done = subprocess.run(
        [sys.executable, "-c", block[1]],
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE_S,
    )
    assert done.stdout == "Message(type=8194, body=b'hello')\n", done.stderr


@pytest.mark.parametrize("names", [(0, 1), (1, 0)], ids=["primary", "secondary"])
def test_the_propagation_puts_the_boxcar_of_the_specification_on_the_wire(
    names: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    boxcars: list[tuple[str, bytes]] = []
    monkeypatch.setattr(example, "show", lambda name, car: boxcars.append((name.host_name, car)))
    machines = (example.MACHINE_1, example.MACHINE_2)
    asking, asked = machines[names[0]], machines[names[1]]
    answer = asyncio.run(in_time(example.both(asking, asked)))
    assert answer is Mtag.PROPAGATED
    assert boxcars[0] == (asking.host_name, BOXCAR)
    senders = [asking.host_name, asked.host_name] * 2
    assert [sender for sender, _ in boxcars] == senders
    assert [len(car) for _, car in boxcars] == [128, 40, 40, 40]


def test_the_body() -> None:
    body = example.TRANSACTION.to_bytes()
    assert body == BOXCAR[64:124]
    assert len(body) == 60
    read = Propagate.from_bytes(body)
    assert read == example.TRANSACTION
    assert read.isolation == IsolationLevel.SERIALIZABLE
    with pytest.raises(WireError, match="not terminated by a zero"):
        Propagate.from_bytes(body[:20] + b"x" * 40)
    with pytest.raises(ValueError, match="39 characters"):
        Propagate(read.transaction, 0, "x" * 40).to_bytes()


def test_a_transaction_that_is_there_already() -> None:
    async def scene() -> list[Mtag]:
        subordinate = Subordinate()
        async with couple() as (a, b):
            b.accept(CONNTYPE_PARTNERTM_PROPAGATE, subordinate.accept)
            partner: NameObject = b.name
            return [await propagate(a, partner, example.TRANSACTION) for _ in range(2)]

    assert run(scene()) == [Mtag.PROPAGATED, Mtag.DUPLICATE]


def test_it_runs_as_a_program() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "examples.oletx", "--from-secondary"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE_S,
    )
    assert done.returncode == 0, done.stderr
    assert "9fa8a337-eaf7-4230-9232-b57379d65077" in done.stdout
    assert done.stdout.endswith("the answer: 0x2002 PROPAGATED\n")
