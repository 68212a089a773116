"""Routing of messages inside a site and between sites (MS-MQBR): an algorithm over the directory.

``snapshot`` is read from the directory once; everything else is a function of it.
"""
