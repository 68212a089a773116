"""The process that ``bench.pipeline`` runs on a given number of cores.

python -m bench.pipelinescaling CORES JOURNALS ROUNDS
"""

from __future__ import annotations

import json
import os
import sys
from time import perf_counter

from mqis.pipeline import sources
from mqis.pipeline.session import Amount, Engine, session


def main(cores: int, journals: str, rounds: int) -> None:
    """Prints, for each round, the record headers scanned and changes decoded per second."""
    if hasattr(os, "sched_setaffinity"):  # Java and Python workers inherit it
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    with session(Engine(master=f"local[{cores}]", memory="2g", amount=Amount.MUCH)) as spark:

        def scan() -> int:
            frame = sources.journal(spark, journals, ["lsn", "time", "kind", "state", "seq"])
            return int(frame.selectExpr("count(*)", "sum(seq)", "max(time)").collect()[0][0])

        def decode() -> int:
            changes = sources.changes(spark, journals)
            counted = changes.selectExpr("count(command)", "sum(size(properties))")
            return int(counted.collect()[0][0])

        rates: dict[str, list[float]] = {"scan": [], "decode": []}
        for _ in range(rounds + 1):
            for name, work in (("scan", scan), ("decode", decode)):
                start = perf_counter()
                count = work()
                rates[name].append(count / (perf_counter() - start))
    # The first round starts Python and compiles queries.
    print(json.dumps({name: found[1:] for name, found in rates.items()}))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
