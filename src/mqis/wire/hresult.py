"""HRESULT codes (MS-MQMQ 2.4, MS-MQDS 2.2.1 and 3): numbers, names and meanings.

    31       30        29        28..16      15..0
    failure  reserved  customer  facility    code

Bit 31 alone tells failure from success, so 0x400Exxxx is a success with additional information.
A code with the customer bit is private to the software that returned it (MS-MQDS 1.8) and is never
one of these. For a code that is not listed ``name_of`` returns the number in hexadecimal.
"""

from __future__ import annotations

from enum import IntEnum

SEVERITY_BIT = 0x80000000
CUSTOMER_BIT = 0x20000000
_FACILITY_WIN32 = 7
_FACILITY_MSMQ = 14


class HResult(IntEnum):
    """The codes that have a name. ``meaning`` says what happened and, if possible, what to do.

    MQ_ERROR_FUNCTION_NOT_SUPPORTED, which MS-MQDS note <15> mentions, is left out: no
    specification gives its number.
    """

    meaning: str

    def __new__(cls, code: int, meaning: str = "") -> HResult:
        member = int.__new__(cls, code)
        member._value_ = code
        member.meaning = meaning
        return member

    # fmt: off
    # success and information
    MQ_OK = (0x00000000, "The operation succeeded.")
    ERROR_SUCCESS = MQ_OK
    SEC_I_CONTINUE_NEEDED = (0x00090312,
        "Authentication is not complete: the other side expects one more token.")
    MQ_INFORMATION_PROPERTY = (0x400E0001,
        "Done, with a warning about at least one property; see the status of each.")
    MQ_INFORMATION_ILLEGAL_PROPERTY = (0x400E0002,
        "Done, except for a property whose identifier is unknown.")
    MQ_INFORMATION_PROPERTY_IGNORED = (0x400E0003,
        "Done; a property that has no effect here was ignored.")
    MQ_INFORMATION_UNSUPPORTED_PROPERTY = (0x400E0004,
        "Done; a property that this side does not support was ignored.")
    MQ_INFORMATION_DUPLICATE_PROPERTY = (0x400E0005,
        "Done; a property was given twice and the second value was ignored.")
    MQ_INFORMATION_OPERATION_PENDING = (0x400E0006,
        "Started but not finished; the result will be delivered later.")
    MQ_INFORMATION_FORMATNAME_BUFFER_TOO_SMALL = (0x400E0009,
        "The queue was created, but its format name did not fit in the caller's buffer.")
    MQ_INFORMATION_INTERNAL_USER_CERT_EXIST = (0x400E000A,
        "The user already had an internal certificate; none was made.")
    MQ_INFORMATION_OWNER_IGNORED = (0x400E000B,
        "Done, but the requested owner was not set.")
    MQ_INFORMATION_QUEUE_OWNED_BY_NT4_PSC = (0x400E03EB,
        "The queue or machine belongs to a Windows NT 4.0 site controller; ask that controller.")
    MQ_INFORMATION_MACHINE_OWNED_BY_NT4_PSC = MQ_INFORMATION_QUEUE_OWNED_BY_NT4_PSC

    # failures (MS-MQMQ 2.4)
    MQ_ERROR = (0xC00E0001,
        "The operation failed for a reason that has no code of its own; see the server's log.")
    MQ_ERROR_PROPERTY = (0xC00E0002, "At least one property was refused; see the status of each.")
    MQ_ERROR_QUEUE_NOT_FOUND = (0xC00E0003,
        "There is no such queue, or the caller has no right to see it.")
    MQ_ERROR_QUEUE_NOT_ACTIVE = (0xC00E0004, "The queue has not been opened, or is gone.")
    MQ_ERROR_QUEUE_EXISTS = (0xC00E0005,
        "Another queue has this path name; choose a different one or open that queue.")
    MQ_ERROR_INVALID_PARAMETER = (0xC00E0006,
        "An argument of the call is not valid.")
    MQ_ERROR_INVALID_HANDLE = (0xC00E0007,
        "The server did not issue this handle, or it has been closed.")
    MQ_ERROR_OPERATION_CANCELLED = (0xC00E0008,
        "The operation was cancelled before it finished.")
    MQ_ERROR_SHARING_VIOLATION = (0xC00E0009,
        "Another reader has opened the queue exclusively; wait until it closes the queue.")
    MQ_ERROR_SERVICE_NOT_AVAILABLE = (0xC00E000B,
        "The queue manager cannot be reached; check that its service is running.")
    MQ_ERROR_MACHINE_NOT_FOUND = (0xC00E000D,
        "The directory knows no computer of this name; check the spelling.")
    MQ_ERROR_ILLEGAL_SORT = (0xC00E0010,
        "The sort order cannot be used, for instance because it names a column twice.")
    MQ_ERROR_ILLEGAL_USER = (0xC00E0011, "The user does not exist or cannot be used here.")
    MQ_ERROR_NO_DS = (0xC00E0013,
        "No directory server answers; check the network, the server list and permissions.")
    MQ_ERROR_ILLEGAL_QUEUE_PATHNAME = (0xC00E0014,
        "The text is not a queue path name (machine\\queue or machine\\private$\\queue).")
    MQ_ERROR_ILLEGAL_PROPERTY_VALUE = (0xC00E0018,
        "A property has a value outside its allowed range.")
    MQ_ERROR_ILLEGAL_PROPERTY = MQ_ERROR_ILLEGAL_PROPERTY_VALUE
    MQ_ERROR_ILLEGAL_PROPERTY_VT = (0xC00E0019,
        "A property came with a variant type other than its own.")
    MQ_ERROR_BUFFER_OVERFLOW = (0xC00E001A,
        "A message property was cut to the buffer; the message is still in the queue.")
    MQ_ERROR_IO_TIMEOUT = (0xC00E001B,
        "No message came within the time that the reader was willing to wait.")
    MQ_ERROR_ILLEGAL_CURSOR_ACTION = (0xC00E001C,
        "The cursor has no current message to move on from; peek at the current one first.")
    MQ_ERROR_MESSAGE_ALREADY_RECEIVED = (0xC00E001D,
        "Another reader removed the message at the cursor; move the cursor.")
    MQ_ERROR_ILLEGAL_FORMATNAME = (0xC00E001E, "The text is not a format name.")
    MQ_ERROR_FORMATNAME_BUFFER_TOO_SMALL = (0xC00E001F,
        "The format name did not fit in the caller's buffer; retry with a larger one.")
    MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION = (0xC00E0020,
        "This kind of format name does not allow the operation (a direct name: no deletion).")
    MQ_ERROR_ILLEGAL_SECURITY_DESCRIPTOR = (0xC00E0021, "The security descriptor is malformed.")
    MQ_ERROR_SENDERID_BUFFER_TOO_SMALL = (0xC00E0022,
        "The sender's identifier did not fit in the caller's buffer; retry with a larger one.")
    MQ_ERROR_SECURITY_DESCRIPTOR_TOO_SMALL = (0xC00E0023,
        "The security descriptor did not fit in the caller's buffer; retry with the size returned.")
    MQ_ERROR_CANNOT_IMPERSONATE_CLIENT = (0xC00E0024,
        "The server could not impersonate the caller, so it could not check the caller's identity.")
    MQ_ERROR_ACCESS_DENIED = (0xC00E0025, "The caller's account lacks the right to do this.")
    MQ_ERROR_PRIVILEGE_NOT_HELD = (0xC00E0026,
        "The operation needs a privilege that the caller's account does not have.")
    MQ_ERROR_INSUFFICIENT_RESOURCES = (0xC00E0027,
        "A limit of the account or of the server is used up; the server's log says which one.")
    MQ_ERROR_USER_BUFFER_TOO_SMALL = (0xC00E0028,
        "The answer did not fit in the caller's buffer; retry with a larger one.")
    MQ_ERROR_MESSAGE_STORAGE_FAILED = (0xC00E002A,
        "The message was not sent because it could not be written to disk; check space and rights.")
    MQ_ERROR_SENDER_CERT_BUFFER_TOO_SMALL = (0xC00E002B,
        "The sender's certificate did not fit in the caller's buffer; retry with a larger one.")
    MQ_ERROR_INVALID_CERTIFICATE = (0xC00E002C,
        "The user's certificate is not a usable X.509 certificate.")
    MQ_ERROR_CORRUPTED_INTERNAL_CERTIFICATE = (0xC00E002D,
        "The user's internal certificate is damaged; renew it.")
    MQ_ERROR_INTERNAL_USER_CERT_EXIST = (0xC00E002E,
        "The user already has an internal certificate; remove it before making another.")
    MQ_ERROR_NO_INTERNAL_USER_CERT = (0xC00E002F,
        "The user has no internal certificate; register one first.")
    MQ_ERROR_CORRUPTED_SECURITY_DATA = (0xC00E0030, "Encryption, signing or key handling failed.")
    MQ_ERROR_CORRUPTED_PERSONAL_CERT_STORE = (0xC00E0031,
        "The user's personal certificate store is damaged.")
    MQ_ERROR_COMPUTER_DOES_NOT_SUPPORT_ENCRYPTION = (0xC00E0033,
        "The computer cannot encrypt or decrypt messages.")
    MQ_ERROR_BAD_SECURITY_CONTEXT = (0xC00E0035,
        "The security context is unknown or invalid; authenticate again.")
    MQ_ERROR_COULD_NOT_GET_USER_SID = (0xC00E0036,
        "The caller's SID could not be determined from its logon.")
    MQ_ERROR_COULD_NOT_GET_ACCOUNT_INFO = (0xC00E0037,
        "The account could not be looked up; check the domain controller.")
    MQ_ERROR_ILLEGAL_MQCOLUMNS = (0xC00E0038,
        "The call names no columns, or columns that do not belong together.")
    MQ_ERROR_ILLEGAL_PROPID = (0xC00E0039,
        "A property identifier is unknown or may not be used in this call.")
    MQ_ERROR_ILLEGAL_RELATION = (0xC00E003A,
        "The query uses a comparison that does not exist.")
    MQ_ERROR_ILLEGAL_PROPERTY_SIZE = (0xC00E003B,
        "A message or correlation identifier has the wrong number of bytes.")
    MQ_ERROR_ILLEGAL_RESTRICTION_PROPID = (0xC00E003C,
        "The query filters by a property that does not allow it.")
    MQ_ERROR_ILLEGAL_MQQUEUEPROPS = (0xC00E003D, "The call names no queue properties at all.")
    MQ_ERROR_PROPERTY_NOTALLOWED = (0xC00E003E,
        "The property exists but is not allowed in this operation.")
    MQ_ERROR_INSUFFICIENT_PROPERTIES = (0xC00E003F,
        "A property that the operation requires is missing.")
    MQ_ERROR_MACHINE_EXISTS = (0xC00E0040, "The directory already has an object for this computer.")
    MQ_ERROR_ILLEGAL_MQQMPROPS = (0xC00E0041, "The call names no queue manager properties at all.")
    MQ_ERROR_DS_IS_FULL = (0xC00E0042, "The directory has no room for another object.")
    MQ_ERROR_DS_ERROR = (0xC00E0043,
        "The directory failed, or refuses the server's own account; see the server's log.")
    MQ_ERROR_INVALID_OWNER = (0xC00E0044,
        "The object has no valid owner; check which server owns it.")
    MQ_ERROR_UNSUPPORTED_ACCESS_MODE = (0xC00E0045,
        "The queue cannot be opened in this access mode.")
    MQ_ERROR_RESULT_BUFFER_TOO_SMALL = (0xC00E0046,
        "The result did not fit in the caller's buffer; retry with a larger one.")
    MQ_ERROR_DELETE_CN_IN_USE = (0xC00E0048,
        "Machines still use this connected network; detach them before deleting it.")
    MQ_ERROR_NO_RESPONSE_FROM_OBJECT_SERVER = (0xC00E0049,
        "The server that owns the object received the request but did not answer in time.")
    MQ_ERROR_OBJECT_SERVER_NOT_AVAILABLE = (0xC00E004A,
        "The server that owns the object is down, being restored or out of reach; retry later.")
    MQ_ERROR_QUEUE_NOT_AVAILABLE = (0xC00E004B,
        "The connection to a queue on another computer broke; check that computer and the network.")
    MQ_ERROR_DTC_CONNECT = (0xC00E004C,
        "The transaction coordinator cannot be reached; check that it is running.")
    MQ_ERROR_TRANSACTION_IMPORT = (0xC00E004E,
        "The transaction could not be imported from its coordinator.")
    MQ_ERROR_TRANSACTION_USAGE = (0xC00E0050,
        "The operation is not allowed inside, or not allowed outside, a transaction.")
    MQ_ERROR_TRANSACTION_SEQUENCE = (0xC00E0051,
        "The steps of the transaction came in an order that is not allowed.")
    MQ_ERROR_MISSING_CONNECTOR_TYPE = (0xC00E0055,
        "An acknowledgment or secured message has to name its connector type; add it.")
    MQ_ERROR_STALE_HANDLE = (0xC00E0056,
        "The queue manager has restarted; close the handle and open the queue again.")
    MQ_ERROR_TRANSACTION_ENLIST = (0xC00E0058, "The queue manager could not join the transaction.")
    MQ_ERROR_QUEUE_DELETED = (0xC00E005A,
        "The queue was deleted while it was open; close the handle.")
    MQ_ERROR_ILLEGAL_CONTEXT = (0xC00E005B, "The lookup context is not valid.")
    MQ_ERROR_ILLEGAL_SORT_PROPID = (0xC00E005C,
        "The sort order names a property that cannot be sorted by.")
    MQ_ERROR_LABEL_TOO_LONG = (0xC00E005D, "The message label is longer than allowed; shorten it.")
    MQ_ERROR_LABEL_BUFFER_TOO_SMALL = (0xC00E005E,
        "The label did not fit in the caller's buffer; retry with a larger one.")
    MQ_ERROR_MQIS_SERVER_EMPTY = (0xC00E005F,
        "The computer knows no directory server; configure or discover one.")
    MQ_ERROR_MQIS_READONLY_MODE = (0xC00E0060,
        "This directory server is read-only at present; use another one, or retry later.")
    MQ_ERROR_SYMM_KEY_BUFFER_TOO_SMALL = (0xC00E0061,
        "The symmetric key did not fit in the caller's buffer; retry with a larger one.")
    MQ_ERROR_SIGNATURE_BUFFER_TOO_SMALL = (0xC00E0062,
        "The signature did not fit in the caller's buffer; retry with a larger one.")
    MQ_ERROR_PROV_NAME_BUFFER_TOO_SMALL = (0xC00E0063,
        "The provider name did not fit in the caller's buffer; retry with a larger one.")
    MQ_ERROR_ILLEGAL_OPERATION = (0xC00E0064,
        "A foreign messaging system does not support this operation.")
    MQ_ERROR_WRITE_NOT_ALLOWED = (0xC00E0065,
        "Changes are blocked while another directory server is being set up; retry afterwards.")
    MQ_ERROR_WKS_CANT_SERVE_CLIENT = (0xC00E0066,
        "That computer is a workstation; a dependent client needs a supporting server.")
    MQ_ERROR_DEPEND_WKS_LICENSE_OVERFLOW = (0xC00E0067,
        "The supporting server has reached its licensed number of clients; use another one.")
    MQ_CORRUPTED_QUEUE_WAS_DELETED = (0xC00E0068,
        "The queue's local description was damaged and has been removed; create the queue again.")
    MQ_ERROR_REMOTE_MACHINE_NOT_AVAILABLE = (0xC00E0069,
        "The other computer does not answer; check it and the network.")
    MQ_ERROR_UNSUPPORTED_OPERATION = (0xC00E006A,
        "The operation needs a directory; this computer works without one (workgroup mode).")
    MQ_ERROR_ENCRYPTION_PROVIDER_NOT_SUPPORTED = (0xC00E006B,
        "This cryptographic provider cannot secure messages; choose another.")
    MQ_ERROR_CANNOT_SET_CRYPTO_SEC_DESCR = (0xC00E006C,
        "The access rights of the machine's keys could not be set.")
    MQ_ERROR_CERTIFICATE_NOT_PROVIDED = (0xC00E006D,
        "The message was to be authenticated, but it came without a certificate.")
    MQ_ERROR_Q_DNS_PROPERTY_NOT_SUPPORTED = (0xC00E006E,
        "PROPID_Q_PATHNAME_DNS cannot be a column of this call.")
    MQ_ERROR_CANNOT_CREATE_CERT_STORE = (0xC00E006F,
        "No certificate store could be made for the internal certificate.")
    MQ_ERROR_CANNOT_OPEN_CERT_STORE = (0xC00E0070,
        "The store that holds the internal certificate could not be opened.")
    MQ_ERROR_ILLEGAL_ENTERPRISE_OPERATION = (0xC00E0071,
        "The enterprise object does not allow this operation.")
    MQ_ERROR_CANNOT_GRANT_ADD_GUID = (0xC00E0072,
        "The user could not be given the right to choose the GUID of new objects.")
    MQ_ERROR_CANNOT_LOAD_MSMQOCM = (0xC00E0073,
        "The setup library Msmqocm.dll is missing or broken on that computer.")
    MQ_ERROR_NO_ENTRY_POINT_MSMQOCM = (0xC00E0074,
        "The setup library Msmqocm.dll lacks a function; its version may be wrong.")
    MQ_ERROR_NO_MSMQ_SERVERS_ON_DC = (0xC00E0075,
        "None of the domain controllers runs a Message Queuing server.")
    MQ_ERROR_CANNOT_JOIN_DOMAIN = (0xC00E0076,
        "The computer is in the domain but not in the directory, so it stays in workgroup mode.")
    MQ_ERROR_CANNOT_CREATE_ON_GC = (0xC00E0077,
        "The object was not created on the named global catalog server.")
    MQ_ERROR_GUID_NOT_MATCHING = (0xC00E0078,
        "The machine object has a GUID other than the installation's; install MSMQ again.")
    MQ_ERROR_PUBLIC_KEY_NOT_FOUND = (0xC00E0079,
        "The computer's public key could not be looked up.")
    MQ_ERROR_PUBLIC_KEY_DOES_NOT_EXIST = (0xC00E007A,
        "The computer has published no public key; register its keys.")
    MQ_ERROR_ILLEGAL_MQPRIVATEPROPS = (0xC00E007B,
        "The call names no private computer properties at all.")
    MQ_ERROR_NO_GC_IN_DOMAIN = (0xC00E007C,
        "The domain has no global catalog server that is known.")
    MQ_ERROR_NO_MSMQ_SERVERS_ON_GC = (0xC00E007D,
        "None of the global catalog servers runs a Message Queuing server.")
    MQ_ERROR_CANNOT_GET_DN = (0xC00E007E,
        "The local computer could not determine its own distinguished name.")
    MQ_ERROR_CANNOT_HASH_DATA_EX = (0xC00E007F,
        "The hash of a message to be authenticated could not be computed.")
    MQ_ERROR_CANNOT_SIGN_DATA_EX = (0xC00E0080,
        "A message to be authenticated could not be signed; check the sender's key.")
    MQ_ERROR_CANNOT_CREATE_HASH_EX = (0xC00E0081,
        "Hashing of a message to be authenticated could not be started.")
    MQ_ERROR_FAIL_VERIFY_SIGNATURE_EX = (0xC00E0082,
        "A received message carries a signature that does not match it.")
    MQ_ERROR_CANNOT_DELETE_PSC_OBJECTS = (0xC00E0083,
        "A primary site controller owns the object; delete it there.")
    MQ_ERROR_NO_MQUSER_OU = (0xC00E0084,
        'The domain lacks the organizational unit "MSMQ Users"; create it by hand.')
    MQ_ERROR_CANNOT_LOAD_MQAD = (0xC00E0085,
        "The directory library Mqad.dll is missing or broken on that computer.")
    MQ_ERROR_CANNOT_LOAD_MQDSSRV = (0xC00E0086, "Reserved; no version reports this.")
    MQ_ERROR_PROPERTIES_CONFLICT = (0xC00E0087,
        "Some of the properties exclude each other; leave one out.")
    MQ_ERROR_MESSAGE_NOT_FOUND = (0xC00E0088,
        "The message was never in the queue or has been removed from it.")
    MQ_ERROR_CANT_RESOLVE_SITES = (0xC00E0089,
        "The computer's site is unknown; check that each subnet is assigned to a site.")
    MQ_ERROR_NOT_SUPPORTED_BY_DEPENDENT_CLIENTS = (0xC00E008A,
        "A dependent client cannot do this through its supporting server.")
    MQ_ERROR_OPERATION_NOT_SUPPORTED_BY_REMOTE_COMPUTER = (0xC00E008B,
        "The other queue manager does not know this operation; it may be an older version.")
    MQ_ERROR_NOT_A_CORRECT_OBJECT_CLASS = (0xC00E008C,
        "The object is of a class other than the requested one.")
    MQ_ERROR_MULTI_SORT_KEYS = (0xC00E008D, "The directory sorts by one column only; give one.")
    MQ_ERROR_GC_NEEDED = (0xC00E008E,
        "A machine object with the requested GUID can be made on a global catalog server only.")
    MQ_ERROR_DS_BIND_ROOT_FOREST = (0xC00E008F,
        "The root of the forest could not be contacted; check DNS.")
    MQ_ERROR_DS_LOCAL_USER = (0xC00E0090,
        "A local account counts as anonymous in the directory; log on with a domain account.")
    MQ_ERROR_Q_ADS_PROPERTY_NOT_SUPPORTED = (0xC00E0091,
        "PROPID_Q_ADS_PATH cannot be a column of this call.")
    MQ_ERROR_BAD_XML_FORMAT = (0xC00E0092,
        "A property that has to be an XML document is not well-formed.")
    MQ_ERROR_UNSUPPORTED_CLASS = (0xC00E0093,
        "The directory object is of a class that cannot be used here.")
    MQ_ERROR_UNINITIALIZED_OBJECT = (0xC00E0094,
        "The management object was used before it was initialized.")
    MQ_ERROR_CANNOT_CREATE_PSC_OBJECTS = (0xC00E0095,
        "A primary site controller has to own the object; create it there.")
    MQ_ERROR_CANNOT_UPDATE_PSC_OBJECTS = (0xC00E0096,
        "A primary site controller owns the object; change it there.")
    MQ_ERROR_RESOLVE_ADDRESS = (0xC00E0099,
        "The address does not resolve; check its spelling and DNS.")
    MQ_ERROR_TOO_MANY_PROPERTIES = (0xC00E009A, "One call takes at most 128 properties; split it.")
    MQ_ERROR_MESSAGE_NOT_AUTHENTICATED = (0xC00E009B,
        "The queue accepts authenticated messages only; this one is not authenticated.")
    MQ_ERROR_MESSAGE_LOCKED_UNDER_TRANSACTION = (0xC00E009C,
        "Another transaction holds the message; wait for its outcome.")

    # failures of the callbacks and of the directory service (MS-MQDS 3, MS-MQMQ 2.4)
    MQ_ERROR_NOT_SUPPORTED = (0xC00E03EB,
        "The caller does not offer this callback or this kind of proof.")
    MQDS_UNKNOWN_SOURCE = (0xC00E0504,
        "A replicated change names a directory server that is not known here.")
    MQDS_WRONG_OBJ_TYPE = (0xC00E0506, "The operation is not defined for this type of object.")
    MQDS_OBJECT_NOT_FOUND = (0xC00E050F, "The directory holds no such object.")
    MQDS_E_NO_MORE_DATA = (0xC00E0523, "There are no more results.")
    MQDS_E_CANT_INIT_SERVER_AUTH = (0xC00E052B,
        "The server could not prove its identity; check its authentication setup.")
    E_ADS_PROPERTY_NOT_FOUND = (0x8000500D, "The object has no value for the property asked for.")
    # fmt: on


_BY_CODE = {int(member): member for member in HResult}


def name_of(code: int) -> str:
    """The name of ``code``, or its number in hexadecimal, marked if the customer bit is set."""
    unsigned = _unsigned(code)
    member = _BY_CODE.get(unsigned)
    if member is not None:
        return member.name
    text = f"0x{unsigned:08X}"
    return f"{text} (customer)" if is_customer(unsigned) else text


def meaning_of(code: int) -> str:
    """The meaning of ``code``; without a name, what its bits tell."""
    unsigned = _unsigned(code)
    member = _BY_CODE.get(unsigned)
    if member is not None:
        return member.meaning
    outcome = "failure" if is_failure(unsigned) else "success"
    if is_customer(unsigned):
        return f"A {outcome} code private to the software that returned it; see its documentation."
    facility, number = unsigned >> 16 & 0x1FFF, unsigned & 0xFFFF
    if facility == _FACILITY_WIN32:
        return f"Windows system error {number}."
    if facility == _FACILITY_MSMQ:
        return f"A Message Queuing {outcome} code that is not documented."
    return f"A {outcome} code of another component (facility {facility}, code {number})."


def is_failure(code: int) -> bool:
    """Returns whether the severity bit is set."""
    return bool(_unsigned(code) & SEVERITY_BIT)


def is_customer(code: int) -> bool:
    """Returns whether the customer bit marks ``code`` as private (MS-MQDS 1.8)."""
    return bool(_unsigned(code) & CUSTOMER_BIT)


def _unsigned(code: int) -> int:
    """The 32 bits of ``code`` as an unsigned number; RPC stubs also return it as a signed one."""
    if not -(1 << 31) <= code < 1 << 32:
        raise ValueError(f"{code} does not fit the 32 bits of an HRESULT")
    return code & 0xFFFFFFFF
