"""Generates journals and exports of a made-up enterprise of any size, with known faults.

Changes go through the directory's own events and are recorded as a server does. A message between
servers simply arrives, unless it has a planted fault. What it says is worked out by the functions
of `protocol.replication` that servers use; running whole servers would take many times as long. The
same plan gives the same records.
"""

from mqis.lab.generate.generate import generate
from mqis.lab.generate.plan import GeneratePlan
from mqis.lab.generate.run import Generated
from mqis.wire.errors import MqisError

__all__ = ["GeneratePlan", "Generated", "MqisError", "generate"]
