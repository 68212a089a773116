"""How far neighbours are behind, in changes and in seconds.

A PSC acknowledges every 256 changes, a backup controller none, so acknowledgements alone would
show a lag where there is none. The transport knows sooner: when there is a session with a
neighbour, nothing waits for it and nothing is in flight to it, its queue manager has all that was
committed one look earlier. (Two looks, for between its commit and the queue a change is in
neither.) What expired while a neighbour was away counts as sent: it asks for that itself, and its
own ``mqis_partition_missing_changes`` shows it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from mqis.wire.guid import Guid

#: Looks at a partition that are remembered; of more, every second one is forgotten.
MAX_LOOKS = 1024


class Lag:
    """Looks at the numbers of the own partitions, and at who has nothing to wait for."""

    def __init__(self) -> None:
        #: When which number was first seen, ascending.
        self._seen: dict[Guid, deque[tuple[int, float]]] = {}
        #: What each neighbour has of them, as far as the transport knows.
        self._delivered: dict[str, dict[Guid, int]] = {}
        self._last: dict[Guid, int] = {}

    def look(self, now: float, numbers: Mapping[Guid, int], idle: Mapping[str, bool]) -> None:
        """``numbers``: the last of each own partition; ``idle``: who has been sent everything."""
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
        """Changes that ``neighbour`` is not known to have, and the age of the oldest of them."""
        has = max(acknowledged, self._delivered.get(neighbour, {}).get(partition, 0))
        if has >= last:
            return 0, 0.0
        times = (at for number, at in list(self._seen.get(partition, ())) if number > has)
        return last - has, max(0.0, now - next(times, now))


def _seen(seen: deque[tuple[int, float]], number: int, now: float) -> deque[tuple[int, float]]:
    if not seen or seen[-1][0] < number:
        seen.append((number, now))
    return seen if len(seen) <= MAX_LOOKS else deque(list(seen)[::-2][::-1])
