"""MS-MQDS: object types, the property catalogue, and the structures inside property values."""
