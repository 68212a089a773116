"""Packets of MS-MQSD, by which clients find directory servers."""
