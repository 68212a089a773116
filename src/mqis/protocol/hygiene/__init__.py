"""Hygiene: faults that a directory can have although all replicas agree on it.

The rules are pure, so that ``mqis check`` and the pipeline use the same ones. ``claims`` turns one
object into claims, each under a key; ``judging`` looks at all claims of one key. Whoever brings
claims of equal keys together, a dictionary or a cluster, gets the same findings. ``topology`` has
the rules about sites, links and gates, which need the whole graph.
"""
