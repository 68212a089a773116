"""Sans-I/O machines and pure rules over the wire values. Time and entropy come in as arguments.

The directory and who may use it
    ``directory``: the objects of MS-MQDS, their properties, rules, lookups and exports
    ``security``: rights, parts of descriptors, the access check
    ``activedirectory``: the same directory in Active Directory (MS-MQDSSM)
    ``hygiene``: faults of a directory on whose content all replicas agree
    ``undeletion``: the past minus the present, brought back as creates

Between servers
    ``node``: one server, composed of the machines below it
    ``replication``: MC-MQDSRP, copies of each other's partitions
    ``queueing``: the messages that carry it, and those of users (MS-MQQB)
    ``routing``: which way a message takes inside a site and between sites (MS-MQBR)
    ``discovery``: how clients find servers (MS-MQSD)

Conversations with a peer
    ``rpc``: DCE/RPC associations, and ``authentication``, the port of what secures them
    ``multiplexer``: MS-CMP, many connections over one session
    ``cmpo``: MS-CMPO, the sessions below it
    ``ldap``: the client's side of LDAP
    ``sessions`` and ``documents``: requests of administrators to a server

Reading evidence
    ``capture``: packets that somebody recorded, decoded
    ``journal``: the chain of a journal's segments, and the past of an object

For all of them
    ``clock``: instants, and pauses that grow; ``budget``: what callers may hold
    ``ports``: what storage and runtime do for the machines; ``errors``
"""
