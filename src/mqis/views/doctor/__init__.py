"""Checks of a server: each finding says what was found and what to do."""
