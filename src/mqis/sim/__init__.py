"""Deterministic simulation: a whole enterprise in one process, with faults drawn from one seed.

The servers are real: ``protocol.node`` with its machines, and stores. Clock, network, disks and
clients are simulated. ``scenario`` draws the events of a run from a seed, ``world`` performs them
in two phases. In the first there are faults, and no rule may be violated (safety). In the second
there are none, and every replica has to equal its authority within a bounded time (liveness). The
checkers are independent of the code that they check: ``history`` records what every authority
committed, ``sync_traffic`` what was sent.

Nothing here depends on the real time, on hashes or on the order of a set: a seed runs the same
everywhere. ``runner`` is the entry point.
"""
