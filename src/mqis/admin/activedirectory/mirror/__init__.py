"""Keeps a store of our own equal to an Active Directory, with a journal of each change."""
