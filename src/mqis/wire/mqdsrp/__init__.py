"""MC-MQDSRP: the replication messages that directory servers send to each other's queue.

All structures are packed: no alignment, no padding. Integers are little-endian except sequence
numbers; names are UTF-16LE with a 16-bit zero. Only the body's length delimits a message. Bytes
after its last field are ignored, because a sister protocol is known to send one too many.
"""
