"""The mqis command."""
