"""MS-MQSD packets, by which clients discover directory servers."""
