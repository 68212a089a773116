"""The directory in Active Directory (MS-MQDSSM): properties as LDAP attributes, without any I/O.

``rows`` has one row for each property, ``reading`` turns entries into properties, ``conditions``
turns lookups into filters, ``creating``, ``setting`` and ``deleting`` plan the LDAP operations of a
change. Whoever talks to a server reads what a plan needs, and sends its steps in order.
"""
