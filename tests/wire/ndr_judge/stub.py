"""Whole stubs: the parameters in order, each of them followed by its referents."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from tests.wire.ndr_judge.streams import In, Kind, Misread, Out, Values, finished

#: For requests, which depend on nothing before them.
NOTHING: Values = {}


def encode(
    parameters: Mapping[str, Kind],
    values: Values,
    wide: bool,
    request: Values = NOTHING,
    noise: Random | None = None,
) -> bytes:
    """The stub; a response has arrays whose sizes are in its ``request``."""
    out, around = Out(wide, noise), {**request, **values}
    for name, kind in parameters.items():
        kind.write(out, values[name], around)
        out.settle()
    return bytes(out.data)


def decode(
    parameters: Mapping[str, Kind], data: bytes, wide: bool, request: Values = NOTHING
) -> Values:
    source, values = In(data, wide), Values()
    for name, kind in parameters.items():
        values[name] = kind.read(source, values)
        source.settle()
    if source.at != len(data):
        raise Misread(f"{len(data) - source.at} octets behind the stub")
    source.check_claims(request)
    found: Values = finished(values)
    return found
