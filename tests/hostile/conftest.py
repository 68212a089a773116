"""Attacks, each against a real server on loopback.

A test here is named for the attack, performs it over sockets, and looks at what the server did.
Where bytes matter the attacker is not our client library: impacket
(``tests/interop/mqds_impacket.py``) or plain sockets.
"""
