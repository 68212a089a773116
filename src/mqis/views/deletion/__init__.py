"""Deletes: the objects that hang on an object, and the deletion of all of them in order."""
