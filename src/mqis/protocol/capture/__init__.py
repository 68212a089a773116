"""Decoding of captured packets: reassembles streams, recognises protocols, decodes messages.

    packets -> fragments.py -> captured_connection.py (two halfstream.py) -> a dissector -> rows
                            -> registry.py -----------------------------------> rows

``registry.py`` has the tables in which a protocol, an RPC interface or a queue is one line.
"""
