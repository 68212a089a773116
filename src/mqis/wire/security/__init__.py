"""MS-DTYP 2.4: security identifiers, access control lists, security descriptors and their text."""
