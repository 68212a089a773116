"""Propagates a transaction from one transaction manager to another: MS-CMP section 4."""
