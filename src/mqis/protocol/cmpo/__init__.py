"""MS-CMPO sessions between two partners, without I/O."""
