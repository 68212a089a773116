"""MC-MQDSRP: how the servers of an enterprise keep copies of each other's partitions.

Every partition has one authority, which numbers its changes. It propagates them to its
neighbours; a replica that sees a gap, or hears of a number it lacks, asks for what is missing.
Nothing depends on a message arriving: what is lost is asked for again.

Everything here runs inside a transaction of the store and returns effects, which the driver
carries out once the transaction is committed. What is kept in memory may be lost at any time:
``Replication.start`` builds it again from the store. ``work`` is the place to start reading, then
``machine``, which sends each message to the file about it.
"""
