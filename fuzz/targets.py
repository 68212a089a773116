"""The targets: every decoder of ``mqis decode`` and the protocol machines, each with its corpus.

The corpus of a target is ``fuzz/corpus/NAME/*``: valid inputs, and inputs that once broke it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fuzz.capture_targets import CAPTURE_TARGETS
from fuzz.cmp_targets import CMP_TARGETS
from fuzz.cmpo_targets import CMPO_TARGETS
from fuzz.discovery_targets import DISCOVERY_TARGETS
from fuzz.journal_targets import JOURNAL_TARGETS
from fuzz.queueing_targets import QUEUEING_TARGETS
from fuzz.rpc_targets import RPC_TARGETS
from fuzz.shortcut_targets import SHORTCUT_TARGETS
from mqis.wire.decoders import DECODERS
from mqis.wire.errors import WireError

CORPUS = Path(__file__).parent / "corpus"


@dataclass(frozen=True, slots=True)
class Target:
    """A function that takes any bytes, and the errors that it may raise."""

    name: str
    run: Callable[[bytes], object]
    answers: tuple[type[Exception], ...] = (WireError,)

    def corpus(self) -> list[bytes]:
        found = [path.read_bytes() for path in sorted((CORPUS / self.name).glob("*"))]
        if not found:
            raise FileNotFoundError(
                f"there is no corpus in {CORPUS / self.name}: put a valid input there"
            )
        return found


TARGETS: tuple[Target, ...] = (
    *(Target(d.name, d.decode) for d in DECODERS),
    *(Target(*rpc) for rpc in RPC_TARGETS),
    *(Target(*shortcut) for shortcut in SHORTCUT_TARGETS),
    *(Target(*queueing) for queueing in QUEUEING_TARGETS),
    *(Target(*journal) for journal in JOURNAL_TARGETS),
    *(Target(*discovery) for discovery in DISCOVERY_TARGETS),
    *(Target(*cmp) for cmp in CMP_TARGETS),
    *(Target(*cmpo) for cmpo in CMPO_TARGETS),
    *(Target(*capture) for capture in CAPTURE_TARGETS),
)
