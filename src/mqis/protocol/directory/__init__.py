"""The directory model of MS-MQDS: its objects, their rules, and what may be asked of them."""
