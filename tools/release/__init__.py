"""A release: wheel, source distribution, manual pages, site, SBOM and checksums, built twice.

``python -m tools.release`` runs it all; ``building`` makes the files, ``sbom`` lists what a release
is made of.
"""
