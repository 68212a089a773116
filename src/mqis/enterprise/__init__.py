"""A whole enterprise on one computer: its plan, its processes, and their status."""
