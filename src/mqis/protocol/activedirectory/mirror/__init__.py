"""A mirror of an Active Directory: its position, and the difference of two objects."""
