"""The command of the harness: see ``tools.harness``."""

from __future__ import annotations

import sys

from tools.harness import directory, enterprise, flush, journal, store
from tools.harness.scenario import main

SCENARIOS = (
    store.SCENARIO,
    journal.SCENARIO,
    flush.SCENARIO,
    directory.SCENARIO,
    enterprise.CHAOS,
    enterprise.SOAK,
)

if __name__ == "__main__":
    sys.exit(main(SCENARIOS))
