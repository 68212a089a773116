"""Bytes to frozen values and back. No I/O, no clock, no randomness; standard library only."""
