"""Discovery (MS-MQSD): how clients find directory servers, and how those answer."""
