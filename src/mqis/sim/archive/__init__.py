"""The world of one journal and its archive, on disks that fail.

``disk`` is a disk that loses power and refuses calls, ``archive_scenario`` draws the steps,
``archive_world`` performs them with the production code (journal, retention, archiver), and
``archive_checks`` compares the files with everything that the store has ever committed.
"""
