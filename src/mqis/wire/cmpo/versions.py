"""BIND_VERSION_SET and BOUND_VERSION_SET (2.2.2, 2.2.3): the versions of three protocol levels.

Level one is MS-CMPO itself, level two MS-CMP, level three the protocol above (MS-DTCO).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mqis.wire.ndr import U32, Struct


@dataclass(frozen=True, slots=True)
class BindVersionSet:
    """The versions that the caller supports."""

    min_level_one: int
    max_level_one: int
    min_level_two: int
    max_level_two: int
    min_level_three: int
    max_level_three: int


@dataclass(frozen=True, slots=True)
class BoundVersionSet:
    """The versions that both partners support; all zero in requests and errors."""

    level_one: int
    level_two: int
    level_three: int

    NONE: ClassVar[BoundVersionSet]


BoundVersionSet.NONE = BoundVersionSet(0, 0, 0)

BIND_VERSION_SET = Struct(
    BindVersionSet,
    min_level_one=U32,
    max_level_one=U32,
    min_level_two=U32,
    max_level_two=U32,
    min_level_three=U32,
    max_level_three=U32,
)
BOUND_VERSION_SET = Struct(BoundVersionSet, level_one=U32, level_two=U32, level_three=U32)
