"""MS-MQDS: object types, property catalogue, and the structures that its values hold."""
