"""Undelete at a server: searches its journal, and creates deleted objects again."""
