"""The world of one journal and its archive, on disks that fail.

``disk`` is a disk that loses power and refuses calls, ``scenario`` draws the steps, ``world``
performs them with the production code (journal, retention, archiver), and ``checks`` compares the
files with everything that the store has ever committed.
"""
