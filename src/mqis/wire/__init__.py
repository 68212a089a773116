"""Codecs between bytes and frozen values. No I/O, clock or randomness; standard library only."""
