"""Carrying messages between queue managers: MS-MQQB without its transactions and its routing."""
