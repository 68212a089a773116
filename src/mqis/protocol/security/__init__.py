"""Authorisation: the rights of MSMQ objects, parts of descriptors, and the access check."""
