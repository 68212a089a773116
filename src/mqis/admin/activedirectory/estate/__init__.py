"""Checks of a whole estate in Active Directory, in a file or in a store."""
