"""Version negotiation between partners (3.1, 3.2.3, 3.3.4.2.1)."""

from __future__ import annotations

from dataclasses import dataclass

from mqis.wire.cmpo.versions import BindVersionSet, BoundVersionSet

Limits = tuple[int, int]


@dataclass(frozen=True, slots=True)
class VersionLimits:
    """Minimum and maximum of each level. Level one is 1..2: this side has W methods (3.2.3.2)."""

    level_two: Limits = (1, 1)
    level_three: Limits = (1, 5)
    level_one: Limits = (1, 2)

    def __post_init__(self) -> None:
        for low, high in (self.level_one, self.level_two, self.level_three):
            if not 0 <= low <= high <= 0xFFFF_FFFF:
                raise ValueError(f"no version lies in {low}..{high}")

    @property
    def offered(self) -> BindVersionSet:
        return BindVersionSet(*self.level_one, *self.level_two, *self.level_three)

    def bind(self, caller: BindVersionSet) -> BoundVersionSet | None:
        """The highest version of each level that both have; None if one level has none."""
        one = _highest(self.level_one, (caller.min_level_one, caller.max_level_one))
        two = _highest(self.level_two, (caller.min_level_two, caller.max_level_two))
        three = _highest(self.level_three, (caller.min_level_three, caller.max_level_three))
        if one is None or two is None or three is None:
            return None
        return BoundVersionSet(one, two, three)


def _highest(mine: Limits, theirs: Limits) -> int | None:
    version = min(mine[1], theirs[1])
    return version if version >= max(mine[0], theirs[0]) else None
