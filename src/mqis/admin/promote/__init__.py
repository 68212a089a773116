"""Putting a server in the place of one that is lost: plans that are shown first, then done."""
