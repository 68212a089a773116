"""Loads, kills and cuts off servers, and compares what they hold with what they acknowledged.

Usage: python -m tools.harness SCENARIO [--seed N] [--directory DIR] [--keep] [options]

| scenario | what is killed | what must hold |
|---|---|---|
| store | a process that writes to a store, 200 times | every acknowledged write, and no other |
| journal | a process that commits and journals, 100 times | every record exactly once |
| flush | nothing: system calls are traced | no acknowledgement before its flush |
| directory | one server under 500 clients (``--kill``) | acknowledged changes; no handle left |
| chaos | five servers; their links are cut | equal replicas, every acknowledged change |
| soak | five servers under load, for long | the same; memory that does not grow; the audit |

Each scenario is a module with a ``SCENARIO``. What they share:

- ``scenario``: the seed, the working directory, the bar, the faults, the exit status;
- ``processes``: starting, killing at an instant, the command ``mqis``, memory;
- ``ledger``: the answers that clients got, and the comparison of stores with them;
- ``workers``: a client that chooses operations on its own queues and records the answers;
- ``enterprise`` and ``links``: ``mqis up`` with proxies between the servers, and the faults.

A killed process loses its memory, but not what it has handed to the kernel. So a kill shows that an
acknowledged write was committed, that half a commit is undone, and that recovery works. It does not
show that anything reached the disk; ``flush`` does.

The seed determines the operations and the time of the kills, but not how far servers get until
then: the same seed does not give the same run.
"""
