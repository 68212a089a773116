"""Deterministic simulation: a whole enterprise in one process, with faults drawn from one seed.

The servers are real: ``protocol.node`` with its machines, and stores. Clock, network, disks and
clients are simulated. ``scenario`` draws the events of a run from a seed, ``world`` performs them
in two phases. In the first there are faults, and no rule may be violated (safety). In the second
there are none, and every replica has to equal its authority within a bounded time (liveness). The
checkers are independent of the code that they check: ``history`` records what every authority
committed, ``sync_traffic`` what was sent.

A run
    ``runner``: runs one seed, or many; ``scenario``: draws the steps; ``directed``: leads into rare
    situations; ``worlds``: kinds of enterprises; ``world``: performs the steps, which ``steps``
    lists; ``run_trace`` and ``coverage``: what happened

Who takes part
    ``simulated_server``, ``simulated_stores``, ``simulated_clock``, ``keys``, ``bootstrap``;
    ``administrator`` and ``workload``: what people and clients do; ``network`` and ``streams``:
    single messages, or queue managers over TCP; ``stranger``, ``lies``, ``hostility``: attacks

Checkers, each of which raises a ``Violation``
    ``history``: replicas hold what authorities committed; ``ledger``: every change was asked for,
    and made once; ``checkers``: at the end all copies are equal; ``complete_replicas``,
    ``equal_digests``, ``memories``, ``restored_authorities``, ``sync_traffic``, ``waits``

Beside it
    ``mutations``: rules that are disabled and bugs that are put in, which the checkers must find;
    ``queues`` and ``archive``: worlds of their own, of users' messages and of archived journals

Nothing here depends on the real time, on hashes or on the order of a set: a seed runs the same
everywhere."""
