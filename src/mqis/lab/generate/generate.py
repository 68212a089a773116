"""Carries out a plan: makes the history, its delivery, the faults, exports and manifest."""

from __future__ import annotations

import json
from pathlib import Path

from mqis.lab.generate.filefaults import SpoiledRun
from mqis.lab.generate.hygiene_faults import plant_hygiene
from mqis.lab.generate.plan import GeneratePlan
from mqis.lab.generate.run import Generated, Progress
from mqis.storage.memory_store import MemoryStore
from mqis.wire.errors import MqisError


def generate(
    plan: GeneratePlan, directory: Path, progress: Progress = lambda done, total: None
) -> Generated:
    """Fills a new directory with ``journals``, ``exports`` and ``manifest.json``."""
    if directory.exists() and any(directory.iterdir()):
        raise MqisError(f"{directory} is not empty; name a new directory")
    store = MemoryStore()
    with store.write() as tx:
        run = SpoiledRun(plan, tx, directory)
        try:
            run.history_of_changes(progress)
            plant_hygiene(run)
            if plan.faults:
                run.plant()
        finally:
            run.delivery.close()
        run.write_exports()
        if plan.faults:
            run.spoil()
    text = json.dumps(run.result.as_json(), indent=2)
    (directory / "manifest.json").write_text(text + "\n", encoding="ascii")
    return run.result
