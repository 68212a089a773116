"""Example programs; each can be run: ``python -m examples.shapes``."""
