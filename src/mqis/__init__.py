"""mqis: the MSMQ directory enterprise in Python."""

__version__ = "0.1.0"
