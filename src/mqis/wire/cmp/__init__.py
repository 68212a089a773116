"""MS-CMP: boxcars, the batches in which the messages of many connections share one session.

    16  BOX_CAR_HEADER                    how many bytes, how many messages
    24  MESSAGE_PACKET + data + filler    the first one, at offset 16
    24  MESSAGE_PACKET + data + filler    the next one, at a multiple of 8
    ...

All integers are little-endian and have 32 bits.
"""
