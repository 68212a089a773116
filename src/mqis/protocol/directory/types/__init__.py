"""The object types of the directory: one module each, and in it one row for each property."""
