"""Values of a machine that are computed, checked or stored in a way of their own.

Four attributes show as several properties (``service``), and PROPID_QM_SITE_ID (201) is the first
element of PROPID_QM_SITE_IDS (222), which alone is stored.
"""

from __future__ import annotations

from mqis.protocol.directory.machine_services import ServiceAttributes
from mqis.protocol.directory.types.computing import guids_of
from mqis.protocol.directory.types.property_row import Compute, ObjectLookup, StoredObject
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.keys import PublicKeys
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propertybag import Properties
from mqis.wire.propvariant import PropVariant, Value

#: Machines of a list that are looked up for their names. Three routing servers are usual; whoever
#: may write the list could make every read of it look up 65,536.
MAX_NAMED = 64


# --- sites ----------------------------------------------------------------------------------------


def check_site(value: Value) -> Value:
    """Refuses the null GUID, which would put the machine in the enterprise's partition."""
    if not value:
        raise ValueError("the null GUID is not a site")
    return value


def check_sites(value: Value) -> Value:
    if not isinstance(value, tuple) or not value:
        raise ValueError("the list must not be empty")
    return tuple(map(check_site, value))  # type: ignore[arg-type]


def sites_of(machine: StoredObject) -> tuple[Guid, ...]:
    """Returns the sites that a machine lies in; the first one is its partition."""
    return guids_of(machine.value(PropId.QM_SITE_IDS))


def first_site(obj: StoredObject, _view: ObjectLookup) -> Value:
    return next(iter(sites_of(obj)), None)


def store_first_site(
    value: Value, before: Properties, _given: Properties
) -> dict[int, PropVariant]:
    """Puts the site first in the list; the others stay."""
    assert isinstance(value, Guid)
    stored = before.get(PropId.QM_SITE_IDS)
    others = stored.value[1:] if stored is not None and isinstance(stored.value, tuple) else ()
    sites = (value, *(site for site in others if site != value))
    return props({PropId.QM_SITE_IDS: sites})


# --- services -------------------------------------------------------------------------------------


def service_bits(obj: StoredObject, _view: ObjectLookup) -> Value:
    return ServiceAttributes.of(obj).bits


def is_router(obj: StoredObject, _view: ObjectLookup) -> Value:
    return int(ServiceAttributes.of(obj).routing)


def is_directory_server(obj: StoredObject, _view: ObjectLookup) -> Value:
    return int(ServiceAttributes.of(obj).directory_server)


def store_service(value: Value, _before: Properties, _given: Properties) -> dict[int, PropVariant]:
    assert isinstance(value, int)
    return ServiceAttributes.from_bits(value).as_properties()


def store_routing(value: Value, before: Properties, _given: Properties) -> dict[int, PropVariant]:
    return ServiceAttributes.of_properties(before).with_routing(value == 1).as_properties()


def store_directory_server(
    value: Value, before: Properties, given: Properties
) -> dict[int, PropVariant]:
    """Stores 228. Clients send 210 as well (3.2.6.1.1), which says the kind of directory server."""
    service = ServiceAttributes.of_properties(before)
    if not (value == 1 and PropId.QM_SERVICE in given and service.role is not None):
        service = service.with_directory_server(value == 1)
    return service.as_properties()


# --- keys and lists -------------------------------------------------------------------------------


def key(provider: str) -> Compute:
    """Makes the reader of one provider's encryption key, which is empty if there is none."""

    def compute(obj: StoredObject, _view: ObjectLookup) -> Value:
        keys = obj.value(PropId.QM_ENCRYPT_PKS)
        if not isinstance(keys, bytes) or not keys:
            return b""
        found = PublicKeys.from_bytes(keys).for_provider(provider)
        return b"" if found is None else found.blob

    return compute


def machine_names(propid: PropId) -> Compute:
    """Makes the reader of the names of the machines that ``propid`` lists."""

    def compute(obj: StoredObject, view: ObjectLookup) -> Value:
        ids = guids_of(obj.value(propid))[:MAX_NAMED]
        machines = (view.get(ObjectType.MACHINE, id) for id in ids)  # noqa: A001
        return tuple(machine.path for machine in machines if machine and machine.path)

    return compute
