"""Runs under the system's Python: Samba as the client of a security context.

Lines of JSON on standard input and output. The first says who and how:

    {"auth_type": n, "level": n, "user": …, "domain": …, "password": … or null for anonymous}

then {"token": hex} gets {"token": hex, "done": bool}, {"sign": [data, whole]} gets
{"signature": …}, {"check": [data, whole, signature]} gets {"ok": bool}, {"wrap": data} and
{"unwrap": data} get {"data": …}. Whatever Samba refuses gets {"error": text}.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from samba import gensec
from samba.credentials import DONT_USE_KERBEROS, Credentials
from samba.param import LoadParm


def start(order: dict[str, Any]) -> Any:
    lp = LoadParm()
    lp.load_default()
    credentials = Credentials()
    if order["password"] is None:
        credentials.set_anonymous()
    else:
        credentials.guess(lp)
        credentials.set_kerberos_state(DONT_USE_KERBEROS)
        credentials.set_domain(order["domain"])
        credentials.set_username(order["user"])
        credentials.set_password(order["password"])
        credentials.set_workstation("JUDGE")
    client = gensec.Security.start_client({"lp_ctx": lp, "target_hostname": "srv1"})
    client.set_credentials(credentials)
    client.want_feature(gensec.FEATURE_DCE_STYLE)
    client.start_mech_by_authtype(order["auth_type"], order["level"])
    return client


def serve(client: Any, order: dict[str, Any]) -> dict[str, Any]:
    if "token" in order:
        done, token = client.update(bytes.fromhex(order["token"]))
        return {"token": token.hex(), "done": done}
    if "sign" in order:
        data, whole = map(bytes.fromhex, order["sign"])
        return {"signature": client.sign_packet(data, whole).hex()}
    if "check" in order:
        data, whole, signature = map(bytes.fromhex, order["check"])
        client.check_packet(data, whole, signature)
        return {"ok": True}
    if "wrap" in order:
        return {"data": client.wrap(bytes.fromhex(order["wrap"])).hex()}
    return {"data": client.unwrap(bytes.fromhex(order["unwrap"])).hex()}


def main() -> None:
    client = start(json.loads(sys.stdin.readline()))
    for line in sys.stdin:
        try:
            answer = serve(client, json.loads(line))
        except Exception as error:  # of Samba, told to whoever asked
            answer = {"error": str(error)}
        print(json.dumps(answer), flush=True)


main()
