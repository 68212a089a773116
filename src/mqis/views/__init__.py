"""Presentations of a running enterprise: the console's data, the doctor, traces and routes."""
