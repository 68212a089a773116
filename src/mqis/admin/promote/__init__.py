"""Replaces a lost server by another one: plans that are shown first, then carried out."""
