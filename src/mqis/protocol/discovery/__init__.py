"""Discovery (MS-MQSD): clients that search for directory servers, and servers that answer."""
