"""The wheel in a fresh environment: built, installed with the locked dependencies, and used.

``python -m tools.wheel`` runs it all. ``building`` lists, builds and installs; ``using`` runs the
commands that need files of the package beside its code.
"""
