"""Judges the input itself: what journals and exports prove, and what is missing from them.

Everything here is plain Python over a few rows for each file and server; ``graph.evidence``
computes those rows from the tables.
"""
