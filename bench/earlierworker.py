"""The process that ``bench.earlier`` runs, with the ``mqis`` of an earlier commit.

python bench/earlierworker.py JOURNALS MEMORY large|''

For each line of its input, ``headers`` or ``changes``, it prints the number of operations and
their nanoseconds. The queries are those of ``bench.pipeline``.
"""

from __future__ import annotations

import json
import sys
from time import perf_counter_ns

#: Begins the lines that are results; Java may print others.
MARK = "measured: "


def main(journals: str, memory: str, large: str) -> None:
    from mqis.pipeline import sources  # noqa: PLC0415 -- bench.earlier imports MARK without Spark
    from mqis.pipeline.session import Engine, session  # noqa: PLC0415
    from mqis.pipeline.transforms.bodies import NEEDED, carried  # noqa: PLC0415

    # The earlier code's engine has other fields than today's.
    engine = Engine(master="local[2]", memory=memory, large=bool(large))  # type: ignore[call-arg]
    with session(engine) as spark:

        def headers() -> int:
            frame = sources.journal(spark, journals, ["lsn", "time", "kind", "state", "seq"])
            found = frame.selectExpr("count(*)", "sum(seq)", "max(time)", "sum(state)")
            return int(found.collect()[0][0])

        def changes() -> int:
            found = carried(sources.journal(spark, journals, NEEDED))
            counted = found.selectExpr("count(command)", "sum(size(properties))")
            return int(counted.collect()[0][0])

        known = {"headers": headers, "changes": changes}
        for line in sys.stdin:
            start = perf_counter_ns()
            operations = known[line.strip()]()
            print(f"{MARK}{json.dumps([operations, perf_counter_ns() - start])}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
