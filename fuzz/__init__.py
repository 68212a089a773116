"""Fuzzing of all decoders and protocol machines with hostile bytes."""
