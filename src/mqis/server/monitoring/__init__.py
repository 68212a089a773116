"""Monitoring of a running server: its status, its metrics and its health."""
