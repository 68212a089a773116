"""MS-CMP: many two-way connections over one session between two partners."""
