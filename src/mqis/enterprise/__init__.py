"""A whole enterprise on one computer: its plan, its processes, and where they are."""
