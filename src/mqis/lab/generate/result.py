"""The result of generating: the enterprise, and everything that is planted in it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

from mqis.lab.generate.faults import (
    Duplicate,
    Gap,
    JournalDamage,
    PlantedEvidence,
    PlantedFault,
    PlantedHygiene,
)
from mqis.lab.generate.plan import GeneratePlan, PlannedServer


@dataclass(slots=True)
class Generated:
    """The result: the enterprise, and everything that an audit has to find in it."""

    plan: GeneratePlan
    members: list[PlannedServer]
    changes: int = 0
    #: The number of answered sync requests.
    rounds: int = 0
    faults: list[PlantedFault] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    duplicates: list[Duplicate] = field(default_factory=list)
    damage: list[JournalDamage] = field(default_factory=list)
    #: Faults of the journals and exports themselves.
    evidence: list[PlantedEvidence] = field(default_factory=list)
    #: Faults of the directory itself, which every complete copy shows.
    hygiene: list[PlantedHygiene] = field(default_factory=list)

    def as_json(self) -> dict[str, object]:
        return {
            "plan": asdict(self.plan),
            "servers": [
                {"name": m.name, "site": str(m.site), "role": m.role.value, "psc": m.psc}
                for m in self.members
            ],
            "changes": self.changes,
            "rounds": self.rounds,
            "faults": [fault.as_json() for fault in self.faults],
            "gaps": [asdict(gap) for gap in self.gaps],
            "duplicates": [asdict(duplicate) for duplicate in self.duplicates],
            "damage": [asdict(damage) for damage in self.damage],
            "evidence": [asdict(finding) for finding in self.evidence],
            "hygiene": [asdict(fault) for fault in self.hygiene],
        }
