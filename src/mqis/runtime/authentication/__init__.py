"""Security contexts from pyspnego: NTLM, Kerberos where it is installed, and Negotiate of both."""
