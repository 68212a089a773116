"""mqis: the MSMQ directory enterprise in Python."""

__version__ = "1.0.0"
