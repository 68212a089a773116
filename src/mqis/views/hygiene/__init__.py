"""Hygiene of a directory in a file, a store or a server, and as text."""
