"""A whole enterprise in one process, under faults that one seed decides.

The servers are real: ``protocol.node`` with its machines, and stores. Clock, network, disks and
clients are simulated. ``scenario`` draws from a seed what happens, ``world`` makes it happen in two
phases: faults, during which nothing wrong may be seen (safety), then none, after which every copy
has to equal its authority within a bounded time (liveness). The checkers stand outside of what
they check: ``history`` knows what every authority has committed, ``traffic`` what was sent.

Nothing here depends on the real time, on hashes or on the order of a set: a seed runs the same
everywhere. ``runner`` is the way in.
"""
