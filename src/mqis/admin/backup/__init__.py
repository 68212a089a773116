"""Backups of one server: taking, reading and restoring them."""
