"""Faults of a real estate: what years of cloned, renamed and removed computers leave behind."""
