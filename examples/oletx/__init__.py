"""A transaction is propagated from one transaction manager to another: MS-CMP section 4."""
