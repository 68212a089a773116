"""Traces one change through an enterprise, from the logs and journals of its servers."""
