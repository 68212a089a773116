"""Benchmarks, most of them with a peer measured in the same run: ``python -m bench --list``."""
