"""The directory in an Active Directory: read and changed over LDAP."""
