"""OleTx connections on asyncio: MS-CMP over MS-CMPO over DCE/RPC. Read ``oletx_endpoint`` first."""
