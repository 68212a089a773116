"""The lag of neighbours, in changes and in seconds.

A PSC acknowledges every 256 changes, a backup controller none, so acknowledgements alone would
show a lag where there is none. The transport knows sooner: if there is a session with a neighbour,
no message waits for it and none is in flight, then its queue manager has all changes that were
committed at the observation before. (Not those of the same observation: a committed change is not
in the queue at once.) A message that expired while a neighbour was away counts as sent: the
neighbour requests those changes itself, and its own ``mqis_partition_missing_changes`` shows them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from mqis.wire.guid import Guid

#: Observations of a partition that are kept; of more, every second one is dropped.
MAX_LOOKS = 1024


class LagWatch:
    """Observes the numbers of the own partitions, and the neighbours that are idle."""

    def __init__(self) -> None:
        #: (number, time at which it was first observed), ascending.
        self._seen: dict[Guid, deque[tuple[int, float]]] = {}
        #: The last number that each neighbour has, as far as the transport knows.
        self._delivered: dict[str, dict[Guid, int]] = {}
        self._last: dict[Guid, int] = {}

    def observe(self, now: float, numbers: Mapping[Guid, int], idle: Mapping[str, bool]) -> None:
        """``numbers``: the last of each own partition; ``idle``: nothing waits for a neighbour."""
        self._delivered = {
            name: self._last if nothing_waits else self._delivered.get(name, {})
            for name, nothing_waits in idle.items()
        }
        self._last = dict(numbers)
        self._seen = {
            partition: _seen(self._seen.get(partition, deque()), number, now)
            for partition, number in numbers.items()
        }

    def of(
        self, neighbour: str, partition: Guid, last: int, acknowledged: int, now: float
    ) -> tuple[int, float]:
        """The number of changes that ``neighbour`` may lack, and the age of the oldest."""
        has = max(acknowledged, self._delivered.get(neighbour, {}).get(partition, 0))
        if has >= last:
            return 0, 0.0
        times = (at for number, at in list(self._seen.get(partition, ())) if number > has)
        return last - has, max(0.0, now - next(times, now))


def _seen(seen: deque[tuple[int, float]], number: int, now: float) -> deque[tuple[int, float]]:
    if not seen or seen[-1][0] < number:
        seen.append((number, now))
    return seen if len(seen) <= MAX_LOOKS else deque(list(seen)[::-2][::-1])
