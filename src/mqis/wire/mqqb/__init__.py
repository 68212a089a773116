"""MS-MQQB: the packets of queue managers over TCP 1801, and the ping that precedes them.

Headers common to several protocols come from MS-MQMQ 2.2.18 to 2.2.20. Everything is
little-endian, and every header ends on a boundary of four bytes.
"""
