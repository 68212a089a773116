"""A corpus of stubs, one JSON object a line, for any implementation of these interfaces.

    call       the method's name in the IDL
    direction  request or response
    syntax     NDR20 or NDR64
    hex        the stub
    values     the parameters by their names in the IDL; {"octets": hex} is an array of bytes, and
               a pointer to a pointer is a list of one
    counts     in a response: the parameters of its request that are sizes of its arrays

``python -m tests.wire.ndr_judge.corpus`` writes it anew; a change of the file is a change of the
judge or of the IDL, because nothing of mqis takes part.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from tests.wire.ndr_judge.drawing import Drawing, arrays
from tests.wire.ndr_judge.idl import METHODS, Method
from tests.wire.ndr_judge.streams import Kind, Values
from tests.wire.ndr_judge.stub import encode
from tests.wire.ndr_judge.variant import ARMS, blank

FILE = Path(__file__).parents[2] / "data" / "ndr-corpus.jsonl"
BY_NAME = {method.name: method for method in METHODS}
#: Calls of each method.
CALLS = 2


@dataclass(frozen=True)
class Entry:
    """One line."""

    call: str
    direction: str
    syntax: str
    stub: bytes
    values: Values
    counts: Values

    @property
    def kinds(self) -> dict[str, Kind]:
        method = BY_NAME[self.call]
        return method.request if self.direction == "request" else method.response

    @property
    def wide(self) -> bool:
        return self.syntax == "NDR64"


def entries() -> list[Entry]:
    found = []
    for line in FILE.read_text(encoding="ascii").splitlines():
        entry = json.loads(line, object_hook=_octets)
        stub = bytes.fromhex(entry["hex"])
        where = (entry["call"], entry["direction"], entry["syntax"])
        found.append(Entry(*where, stub, entry["values"], entry.get("counts", {})))
    return found


def normal(method: Method, request: Values) -> Values:
    """A request that has only types where the response has values."""
    if "apVar" not in method.request.keys() & method.response.keys():
        return request
    return {**request, "apVar": [blank(variant["vt"]) for variant in request["apVar"]]}


def _octets(value: dict[str, Any]) -> Any:
    return bytes.fromhex(value["octets"]) if value.keys() == {"octets"} else value


def _hex(value: bytes) -> dict[str, str]:
    return {"octets": value.hex()}


def _lines() -> Iterator[str]:
    for method in METHODS:
        for number in range(CALLS):
            request, response = Drawing(Random(f"corpus {method.name} {number}")).call(method)
            yield from _stubs(method, normal(method, request), response)
    yield from _every_variant(BY_NAME["S_DSSetProps"], 0)


def _every_variant(method: Method, seed: int) -> Iterator[str]:
    """One call with a variant of each type, in the order of the IDL."""
    drawing = Drawing(Random(seed))
    request, response = drawing.call(method)
    variants = [{**blank(vt), "_varUnion": drawing.arm(vt)} for vt in ARMS]
    request |= {"cp": len(variants), "aProp": list(range(101, 101 + len(variants)))}
    yield from _stubs(method, {**request, "apVar": variants}, response)


def _stubs(method: Method, request: Values, response: Values) -> Iterator[str]:
    sizes = [array.size for kind in method.response.values() for array in arrays(kind)]
    counts = {name: request[name] for name in sizes if name not in response}
    for syntax in ("NDR20", "NDR64"):
        wide = syntax == "NDR64"
        head = {"call": method.name, "direction": "request", "syntax": syntax}
        yield _line(head, encode(method.request, request, wide), values=request)
        head["direction"] = "response"
        stub = encode(method.response, response, wide, request)
        yield _line(head, stub, values=response, counts=counts)


def _line(head: dict[str, str], stub: bytes, **rest: Values) -> str:
    return json.dumps({**head, "hex": stub.hex(), **rest}, default=_hex, separators=(",", ":"))


if __name__ == "__main__":
    FILE.write_text("".join(f"{line}\n" for line in _lines()), encoding="ascii")
