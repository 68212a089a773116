"""Deletes and undeletes: the objects that hang on an object, deleted or brought back in order."""
