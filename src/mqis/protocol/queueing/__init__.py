"""The transport between queue managers: MS-MQQB without transactions, with MS-MQBR routes."""
