"""Hostile bytes against everything that decodes."""
