"""MC-MQDSRP: the replication messages that directory servers put into each other's queue.

Everything is packed: no alignment, no padding. Integers are little-endian but for sequence numbers,
names are UTF-16LE up to a 16-bit zero. Nothing but the body's length delimits a message, and bytes
behind its last field are ignored: a sister protocol is known to send one too many.
"""
