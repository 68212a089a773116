"""Backups of one server: taking one while it runs, looking at one, putting one back."""
