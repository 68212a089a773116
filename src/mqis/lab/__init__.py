"""Enterprises to try things on: the demonstration, generated journals, messages sent for real."""
