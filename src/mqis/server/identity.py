"""The identity of a server in the enterprise, from its configuration and its store."""

from __future__ import annotations

import socket
from base64 import b64decode, b64encode
from binascii import Error as Base64Error

from mqis.config.errors import ConfigError
from mqis.config.sections import Config
from mqis.protocol.directory.objects import DirectoryObject, name_key
from mqis.protocol.directory.ownership import enterprise
from mqis.protocol.directory.types.machine_values import sites_of
from mqis.protocol.ports import View
from mqis.protocol.replication.server_identity import Role, Server
from mqis.runtime.node.members import Seed
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.mqds.keys import RsaPublicKey
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId


def server_name(config: Config) -> str:
    return config.server.name or socket.gethostname().partition(".")[0]


def identify(config: Config, view: View) -> Server:
    """Returns the server's identity.

    Raises ``ConfigError`` for a key that is missing, or that contradicts the store.
    """
    name, section = server_name(config), config.replication
    role = Role(config.server.role.value)
    machine = view.find(ObjectType.MACHINE, name)
    id_ = _agreed("replication.id", section.id, None if machine is None else machine.id)
    if id_ is None:
        raise ConfigError(
            f"server.role: it is {role.value}, but the directory has no machine {name!r}; 'mqis "
            "join' makes this server a member, 'mqis init --enterprise' founds an enterprise"
        )
    site = section.site_id or _site_of(machine)
    if site is None:
        raise ConfigError(f"replication.site_id: not set, and the machine {name!r} names no site")
    pec = section.pec or _pec_of(view) or (name if role is Role.PEC else "")
    if not pec:
        raise ConfigError(
            "replication.pec: not set, and the store names no PEC; 'mqis join' sets it"
        )
    if (role is Role.PEC) is not (name_key(pec) == name_key(name)):
        raise ConfigError(
            f"server.role: it is {role.value}, but the PEC of this enterprise is {pec}"
        )
    seeds = {seed.id: seed.name for seed in seeds_of(config)}
    psc = section.psc or _psc_of(view, site)
    if role is Role.BSC and not psc:
        raise ConfigError(
            "replication.psc: not set, and the store names no PSC; 'mqis join' sets it"
        )
    return Server(name, id_, site, role, pec, psc if role is Role.BSC else "", seeds)


def _agreed(key: str, configured: Guid | None, stored: Guid | None) -> Guid | None:
    if configured is not None and stored is not None and configured != stored:
        raise ConfigError(f"{key}: it is {configured}, but the store says {stored}")
    return configured or stored


def _site_of(machine: DirectoryObject | None) -> Guid | None:
    return None if machine is None else next(iter(sites_of(machine)), None)


def _pec_of(view: View) -> str:
    root = enterprise(view)
    name = None if root is None else root.value(PropId.E_PECNAME)
    return name if isinstance(name, str) else ""


def _psc_of(view: View, site: Guid) -> str:
    obj = view.get(ObjectType.SITE, site)
    name = None if obj is None else obj.value(PropId.S_PSC)
    return name if isinstance(name, str) else ""


# --- seeds ----------------------------------------------------------------------------------------


def seeds_of(config: Config) -> list[Seed]:
    return [parse_seed(text) for text in config.replication.seeds]


def parse_seed(text: str) -> Seed:
    """Parses ``NAME GUID [KEY]``; the key is a PUBLICKEYBLOB in Base64."""
    words = text.split()
    try:
        name, id_ = words[0], Guid.parse(words[1])
        key = RsaPublicKey.from_bytes(b64decode(words[2], validate=True)) if words[2:] else None
    except (IndexError, ValueError, Base64Error, WireError) as error:
        raise ConfigError(f"replication.seeds: {text!r} is not NAME GUID KEY: {error}") from None
    return Seed(name, id_, key)


def seed_text(seed: Seed) -> str:
    key = "" if seed.key is None else " " + b64encode(seed.key.to_bytes()).decode()
    return f"{seed.name} {seed.id}{key}"
