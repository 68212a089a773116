"""The three packets of MS-MQSD 4, and what is in them."""

from __future__ import annotations

from mqis.wire.guid import Guid
from mqis.wire.mqds.serverlist import ServerSpec
from mqis.wire.mqsd.discovery_packet import TopologyServerReply
from mqis.wire.mqsd.request import TopologyClientRequest

ENTERPRISE = Guid.parse("e6eaba61-d1c6-11db-baac-0003ff4e2d22")
REQUEST_ID = Guid.parse("f291a103-e33c-ab4f-a930-be3a33e432dd")
CLIENT_SITE = Guid.parse("dcc51bf6-d4ad-4543-8739-71568e8f9128")
NETWORK = Guid.parse("e6eaba62-d1c6-11db-baac-0003ff4e2d22")
OTHER_SITE = Guid.parse("e6eaba60-d1c6-11db-baac-0003ff4e2d22")

REQUEST_BYTES = bytes.fromhex(
    "00010000 61BAEAE6C6D1DB11BAAC0003FF4E2D22 03A191F23CE34FABA930BE3A33E432DD"
    "F61BC5DCADD44345873971568E8F9128"
)
OWN_SITE_BYTES = bytes.fromhex(
    "00020000 03A191F23CE34FABA930BE3A33E432DD 01000000 00000000 00000000"
    "62BAEAE6C6D1DB11BAAC0003FF4E2D22"
)
OTHER_SITE_BYTES = bytes.fromhex(
    "00020000 03A191F23CE34FABA930BE3A33E432DD 01000000 00000000 12000000"
    "62BAEAE6C6D1DB11BAAC0003FF4E2D22 60BAEAE6C6D1DB11BAAC0003FF4E2D22"
    "31003000 6E007400340070006500630000 00"
)

REQUEST = TopologyClientRequest(ENTERPRISE, REQUEST_ID, CLIENT_SITE)
OWN_SITE_REPLY = TopologyServerReply(REQUEST_ID, (NETWORK,))
OTHER_SITE_REPLY = TopologyServerReply(
    REQUEST_ID, (NETWORK,), 0, OTHER_SITE, (ServerSpec("nt4pec"),)
)
