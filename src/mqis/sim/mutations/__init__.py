"""Single rules taken back, to show that the checkers see what is wrong without them.

``E..``: back to the letter of the specification. ``S..``: without the protection against somebody
hostile. No configuration leads here: a mutation replaces functions of ``protocol`` for as long as
its context lasts, in this process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType

from mqis.sim.mutations import insecure, literal

#: A module or class, a function of it, and what makes the other one from it.
Replacement = tuple[ModuleType | type, str, Callable[..., object]]

MUTATIONS: dict[str, tuple[str, tuple[Replacement, ...]]] = {
    "E01": ("a sync reply is sorted descending, and taken as it comes", literal.E01),
    "E03": ("a sync request ends at the first change that waits", literal.E03),
    "E04": ("waiting changes are applied in the middle of a sync reply", literal.E04),
    "E05": ("a sync request without an answer is not repeated", literal.E05),
    "E09": ("a PSC serves the partitions that it owns, and no others", literal.E09),
    "E10": ("a sync reply has the tombstones of all partitions", literal.E10),
    "E11": ("deleting what is not there is an error", literal.E11),
    "E12": ("deletions leave no tombstone", literal.E12),
    "E20": ("purging does not raise the purged number", literal.E20),
    "S01": ("signatures are not verified", insecure.S01),
    "S02": ("a change request is decided each time that it comes", insecure.S02),
    "S03": ("a change request is decided again once its answer is forgotten", insecure.S03),
    "S04": ("a purge is believed of everybody, at once", insecure.S04),
    "S05": ("a server may ask in the name of any other", insecure.S05),
    "S06": ("a server is believed whatever it asks for", insecure.S06),
    "S07": ("a request may choose names and identifiers", insecure.S07),
    "S08": ("acknowledgements are believed of everybody", insecure.S08),
}


@contextmanager
def mutated(name: str | None) -> Iterator[None]:
    """Inside, one rule is taken back; None: none is."""
    if name is None:
        yield
        return
    if name not in MUTATIONS:
        raise ValueError(f"{name!r} is none of {', '.join(MUTATIONS)}")
    _, replacements = MUTATIONS[name]
    originals = [(module, key, getattr(module, key)) for module, key, _ in replacements]
    for (module, key, make), (_, _, original) in zip(replacements, originals, strict=True):
        setattr(module, key, make(original))
    try:
        yield
    finally:
        for module, key, original in originals:
            setattr(module, key, original)
