"""Mutations: each disables one rule, to show that the checkers detect its absence.

``E..`` follows the letter of the specification, ``S..`` drops a protection against hostile servers,
``B..`` is a plausible bug; ``Q..`` is one of routed queues, ``A..`` of archives (``sim.worlds``).
No configuration can enable them: a mutation replaces functions of ``protocol`` in this process for
the duration of its context.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType

from mqis.sim.mutations import archives, bugs, damage, insecure, literal, queues, routed

#: A module or class, the name of its function, and a function that returns the replacement.
Replacement = tuple[ModuleType | type, str, Callable[..., object]]

MUTATIONS: dict[str, tuple[str, tuple[Replacement, ...]]] = {
    "E01": ("a sync reply is sorted descending and applied in that order", literal.E01),
    "E03": ("a sync request ends at the first pending change", literal.E03),
    "E04": ("pending changes are applied in the middle of a sync reply", literal.E04),
    "E05": ("an unanswered sync request is not repeated", literal.E05),
    "E09": ("a PSC serves only the partitions that it owns", literal.E09),
    "E10": ("a sync reply has the tombstones of all partitions", literal.E10),
    "E11": ("deleting an object that does not exist is an error", literal.E11),
    "E12": ("deletions leave no tombstone", literal.E12),
    "E20": ("purging does not raise the purged number", literal.E20),
    "S01": ("signatures are not verified", insecure.S01),
    "S02": ("a change request is executed each time that it arrives", insecure.S02),
    "S03": ("a change request is executed again once its answer is forgotten", insecure.S03),
    "S04": ("a purge notice is believed from any server, at once", insecure.S04),
    "S05": ("a server may send requests in the name of any other", insecure.S05),
    "S06": ("a server may request any change", insecure.S06),
    "S07": ("a request may choose names and identifiers", insecure.S07),
    "S08": ("acknowledgements are believed from any server", insecure.S08),
    "S09": ("a server gets another site's own queues by asking for them", insecure.S09),
    **bugs.BUGS,
    **damage.BUGS,
    **queues.BUGS,
    **routed.BUGS,
    **archives.BUGS,
}


@contextmanager
def mutated(name: str | None) -> Iterator[None]:
    """Disables one rule inside the block; None disables none."""
    if name is None:
        yield
        return
    if name not in MUTATIONS:
        raise ValueError(f"there is no mutation {name!r}; there are {', '.join(MUTATIONS)}")
    with replaced(MUTATIONS[name][1]):
        yield


@contextmanager
def replaced(replacements: tuple[Replacement, ...]) -> Iterator[None]:
    """Replaces functions inside the block."""
    originals = [(module, key, getattr(module, key)) for module, key, _ in replacements]
    for (module, key, make), (_, _, original) in zip(replacements, originals, strict=True):
        setattr(module, key, make(original))
    try:
        yield
    finally:
        for module, key, original in originals:
            setattr(module, key, original)
