"""LDAP as text and values: distinguished names, search filters, LDIF files."""
