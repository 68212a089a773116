"""Capture files and the headers inside them: pcap, pcapng, Ethernet to TCP and UDP.

A file is read as one buffer (bytes, or a view of a mapped file), so a big one need not be in
memory. What follows the transport header is decoded elsewhere.
"""
