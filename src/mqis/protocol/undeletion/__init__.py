"""Undelete: brings deleted objects back, as an operation of mqis that no specification has.

No client of MS-MQDS can choose the identifier of a queue, the owner of an object or its times. So
the authority itself creates the objects again, from what its journal says of them.
"""
