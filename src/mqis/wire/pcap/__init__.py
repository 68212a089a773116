"""Capture files and the headers around what they hold: pcap, pcapng, Ethernet to TCP and UDP.

A file is walked over as one buffer (bytes, or a view of a mapped file), so a big one need not be in
memory. Whatever follows the transport's header is for others.
"""
