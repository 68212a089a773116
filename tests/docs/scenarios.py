"""The sessions in which the pages' commands run, one for each page or for pages that need the same.

A page is run as it stands. Where a test cannot have what the page has (port 1801, a domain
controller of that name, a moment of last week), ``replaced`` says what it has instead.
"""

from __future__ import annotations

from tests.docs.documents import blocks, text_of
from tests.docs.pages import Scenario
from tests.estate.planted import OU

#: Ends the servers of a session, however it ends.
_ENDED = "trap 'kill $(jobs -p) 2> /dev/null || true' EXIT"
#: The PEC asks a new PSC again within a minute, and then knows its role.
_NAMED = (
    "until mqis doctor --config ../delft/mqis.toml --all | grep -q 'lei-dir2 (psc)'; "
    "do sleep 1; done"
)
_DOWN = "trap 'mqis down > /dev/null 2>&1 || true' EXIT"
_RPC_PORTS = ("2879", "1135")
#: The files of the account that reads, and the controller by the address that the certificate has.
_PASSWORDS = (
    'umask 077; printf %s "$READER_PASSWORD" | tee password password.txt > ldap-password\n'
    'echo "$ADMINISTRATOR_PASSWORD" > admin; umask 022'
)
_CONTROLLER = (r"dc1\.corp\.example", "127.0.0.1")
#: Samba 4.17 has no child domains; tests/admin has forests of several.
_CHILD = (r" ldaps://dc1\.berlin\.corp\.example", "")
#: The list that the controller has, in the place of those of the page.
_LISTS = [
    (r"b92cc7c8-0b1e-434b-b7ad-a1b791e457dd", "3c3c3c3c-3c3c-3c3c-3c3c-3c3c3c3c3c3c"),
    (r"CN=orders-everywhere", "CN=all"),
]
_AS_ADMINISTRATOR = 'export MQIS_LDAP_USER="$ADMINISTRATOR" MQIS_LDAP_PASSWORD_FILE=admin'
_LDAP = '-x -H ldaps://127.0.0.1 -D "$ADMINISTRATOR" -w "$ADMINISTRATOR_PASSWORD"'
#: The configuration of the page, with this controller and with ports that are free.
_PASS_THROUGH = (
    blocks(text_of("pass-through.md"), "toml")[0]
    .replace("dc1.corp.example", "127.0.0.1")
    .replace("mqis@corp.example", "reader@corp.example")
    + '[rpc]\nlisten = "127.0.0.1"\nport = 0\nmapper_port = 0\n'
)
#: The first commands of the blocks, in an order in which each has what it reads.
_PIPELINE = (
    "make pipeline",
    "mqis pipeline run --journals demo",
    "mqis pipeline rebuild",
    "mqis pipeline sql",
    "mqis pipeline report",
    "mqis pipeline run --journals run",
    "mqis pipeline init",
)
#: Queues and a site that somebody has deleted.
_DELETED = (
    "at='--server 127.0.0.37:2879'; mqis create site Berlin $at\n"
    "mqis create queue 'app1\\more' $at; mqis delete queue 'app1\\more' --yes $at\n"
    "mqis delete queue 'app1\\orders' --yes $at; mqis delete site Berlin --yes $at"
)
#: A change that a backup controller has forwarded, and its two names.
_CHANGED = (
    "export MQIS_PASSWORD_FILE=$PWD/mqis-run/passwords/admin\n"
    "export MQIS_USER='MERIDIAN\\admin' began=$(date -u +%FT%T.%6N)\n"
    "mqis create queue 'C14\\testq' label=Test --server ber-dir2\n"
    "mqis trace 'C14\\testq' > trace.txt\n"
    "change=$(awk '/^change/ {print $2}' trace.txt)\n"
    "request=$(awk '/^request/ {print $2}' trace.txt)"
)

SCENARIOS = (
    # --- a directory file ------------------------------------------------------------------------
    Scenario(
        "readme",
        [("README.md", "mqis tour")],
        printed=["ams-app1\\payments", "S-1-5-32-544", "ok: 1 enterprise, 3 sites"],
    ),
    Scenario(
        "contributing",
        [("CONTRIBUTING.md", "*")],
        before='cd "$ROOT"',
        replaced=[(r"--seeds 20", "--seeds 2")],
        printed=["every gate: style, types, layers, tests", "2 seeds in"],
    ),
    Scenario(
        "commands",
        [("docs/commands.md", "*")],
        replaced=[(r"^man -l", "man -P cat -l")],
        printed=["ams-app1\\audit", "mqis-lookup"],
    ),
    Scenario("properties", [("docs/properties.md", "*")], printed=["label"]),
    Scenario(
        "stores and exports",
        [("docs/stores.md", "*"), ("docs/export.md", "*")],
        before="mqis tour --store demo.db > /dev/null; mqis export directory.jsonl --store demo.db",
        after="test -s copy.db",
        printed=["ok: 1 enterprise, 3 sites"],
    ),
    Scenario(
        "a store in PostgreSQL",
        [("docs/stores.md", "*")],
        before="mqis tour --store demo.db > /dev/null; mqis export directory.jsonl --store demo.db",
        replaced=[("site.db", '"$POSTGRES"')],
        printed=["ok: 1 enterprise, 3 sites"],
        real="postgres",
    ),
    Scenario(
        "diff",
        [("docs/diff.md", "mqis tour")],
        after="grep -q 'no differences' diff.html",
        printed=["monday.jsonl -> sqlite:demo.db: no differences"],
    ),
    Scenario(
        "estate",
        [("docs/estate.md", "*")],
        finds=["mqis check", "mqis routes"],
        after="grep -q '<svg' estate.svg",
        printed=["estate.jsonl -> sqlite:new.db: no differences"],
    ),
    Scenario("check", [("docs/check.md", "*")]),
    Scenario(
        "routing",
        [("docs/routing.md", "*")],
        after="grep -q '^<svg' route.svg; grep -q '<svg' map.svg",
        printed=[
            "cost 50 instead of 30 (+20)",
            "ams-desk1 to chi-app1: arrived after 4 hops",
            "the travelled path is the explained one",
        ],
    ),
    Scenario(
        "capture",
        [("docs/capture.md", "*")],
        after="grep -q ixnremote oletx.jsonl; grep -q cmp oletx.jsonl",
        replaced=[
            (r"^ssh server tcpdump -c 1000 -w - port 1801", "gzip -k msmq.pcap; cat msmq.pcap"),
        ],
        varying=r"\b\d+\b",
        printed=["ChangePropagation create pec1\\orders"],
    ),
    Scenario("troubleshooting", [("docs/troubleshooting.md", "*"), ("docs/upgrading.md", "*")]),
    Scenario(
        "simulation",
        [("docs/simulation.md", "*")],
        replaced=[
            (r"--seeds 20", "--seeds 2"),
            (r"\.venv/bin/(python -m tests\.sim\.mirror)", r"\1"),
            (r"mirror --seeds 100", "mirror --seeds 2"),
        ],
        printed=["2 seeds in", "seed 4"],
    ),
    Scenario(
        "benchmarks",
        [("docs/benchmarks.md", "*")],
        before='cd "$ROOT"',
        replaced=[(r" list the entries$", "")],
        printed=["stores", "replication"],
    ),
    Scenario(
        "console of a file",
        [("docs/console.md", "mqis tour")],
        until={"mqis console": "http://127.0.0.1"},
    ),
    # --- protocols -------------------------------------------------------------------------------
    Scenario(
        "shapes",
        [("docs/rpc.md", "*")],
        until={"python -m examples.shapes serve": "[0-9]"},
    ),
    Scenario(
        "oletx",
        [("docs/oletx.md", "*")],
        before=_ENDED,
        ports=("21351", "21352"),
        replaced=[
            (r"--echo$", "--echo > listen.txt & until grep -q . listen.txt; do sleep 0.1; done"),
            (r"FILE +#.*", '$(ls -d "$ROOT"/fuzz/corpus/ixnremote/* | head -1)'),
        ],
    ),
    # --- servers ---------------------------------------------------------------------------------
    Scenario(
        "server",
        [("docs/server.md", "*")],
        ports=_RPC_PORTS,
        printed=[
            "created queue ams-app1\\hello (",
            "full control",
            "deleted queue ams-app1\\hello",
        ],
        logged=["stopped"],
    ),
    Scenario(
        "discovery",
        [("docs/discovery.md", "*")],
        ports=("1135", "MSMQPORT"),
        replaced=[
            (r"(--discovery [0-9.]+)", r"\1:MSMQPORT"),
            (r"discover --network", "discover --port MSMQPORT --network"),
            (r"'(127\S+) (127\S+)'", r"'\1:MSMQPORT \2:MSMQPORT'"),
        ],
        # The list is that of the server which answers first.
        varying=r":\d+\)$|(?<=^directory servers: ).*",
    ),
    Scenario(
        "replication, its journals and their archive on S3",
        [
            ("docs/replication.md", "*"),
            ("", "cd ..; mkdir run copies; ln -s ../delft run/pec; ln -s ../leiden run/psc1"),
            ("", "ln -s ../leiden/journal copies/psc1"),
            ("docs/journal.md", "*"),
        ],
        before=_ENDED,
        own_network=True,
        replaced=[
            (r"journal key psc1", "journal key lei-dir1"),
            (r"directory\.db", "mqis.db"),
            (r"s3://backups/mqis", '"$S3"'),
        ],
        until={"mqis journal tail": "change propagation"},
        printed=[
            "lei-dir1 is a psc of Acme in site Leiden",
            "psc of Leiden, queue manager TCP 1801",
            "created queue del-dir1\\orders (",
        ],
        logged=["stopped"],
        real="s3",
    ),
    Scenario(
        "undelete",
        [
            ("docs/undelete.md", "(umask 077"),
            ("", _DELETED),
            ("docs/undelete.md", "mqis undelete queue"),
        ],
        before=_ENDED,
        ports=_RPC_PORTS,
        replaced=[
            (r"127\.0\.0\.1\b", "127.0.0.37"),  # whose queue port nobody else uses
            (r"^kill %1; wait %1$", "true"),
            (r"--server (psc1|pec)", "--server 127.0.0.37:2879"),
            # Without a terminal nobody can confirm the plan.
            (r"^(mqis undelete (?:queue|site|--deleted-by) .*--server \S+)", r"\1 --yes"),
            (r"--deleted-by bob", "--deleted-by alice"),
            (r"--under ber-app1", "--under app1"),
            (r"2026-03-02T14:00\.\.2026-03-02T14:30", "2000-01-01T14:00..2100-01-01T14:30"),
            (r"2026-03-02\.\.", "2000-01-01.."),
        ],
        finds=["mqis undelete --under", "mqis undelete --server"],  # nothing is left to bring back
        printed=[
            "1 queue would be orphaned and will be deleted first:\n  queue app1\\orders",
            "deleted machine app1",
            "to bring back: 1 machine, 1 queue",
            "brought back 2 objects",
        ],
    ),
    # --- enterprises -----------------------------------------------------------------------------
    Scenario(
        "tutorial",
        [("docs/tutorial.md", "*")],
        before=_DOWN,
        printed=[
            "created queue C14\\testq (",
            "change forwarded",
            "cost 50 instead of 30 (+20)",
        ],
    ),
    Scenario(
        "operations",
        [("docs/operations.md", "mqis up --example"), ("docs/operations.md", "mqis up --detach")],
        before=_DOWN,
        printed=[
            "Meridian is up: 5 servers ready after ",
            "Meridian  5 of 5 servers up, process ",
            "created queue C14\\testq (",
            "killed ber-dir2, process ",
            "chi-dir1 is stopped; ",
            "chi-dir1 is ready, process ",
            "ber-dir2 ended (SIGKILL); starting it again",
            "Meridian is down",
            "cost 10 -> 15",
            "Meridian is up: 1 step carried out",
            "left alone: queue C14\\orders: label is Changed, in the file Incoming orders",
            "queue C14\\orders: label = Changed",
        ],
    ),
    Scenario(
        "backups",
        [
            ("", "mqis up --example > enterprise.toml; mqis up --detach"),
            ("docs/operations.md", "mqis backup backups/"),
        ],
        before=_DOWN,
        printed=[
            "5 backups there",
            "5 backups intact",
            "next: mqis start chi-dir1",
            "chi-dir1 is ready",
        ],
    ),
    Scenario(
        "recovery",
        [
            ("docs/operations.md", "mkdir delft"),
            ("docs/operations.md", "cd ../utrecht"),
            ("", _NAMED),
            ("docs/operations.md", "mqis doctor"),
        ],
        before=_ENDED,
        after="test -e ../leiden/mqis.toml",
        own_network=True,
        printed=[
            "it holds secrets (accounts.toml, signing.key): anyone who can read it can act as this",
            "next: mqis serve --config mqis.toml; it asks the other servers first",
            "lei-dir2 becomes the PSC of Leiden in the place of lei-dir1",
            "checked: lei-dir1 does not answer",
            "nothing was changed (--dry-run)",
            "created queue lei-dir2\\new (",
            "lei-dir1 (bsc) at ",
            "lei-dir2 (psc) at ",
        ],
        logged=[
            "this store was restored, asking the other servers first: backup of lei-dir1, ",
            "lei-dir1 is a backup of this site now",
        ],
    ),
    Scenario(
        "an enterprise",
        [
            ("README.md", ". .venv/bin/activate"),
            ("", _CHANGED),
            ("docs/logs.md", "*"),
            ("docs/diff.md", "mqis diff server:"),
            ("", "mqis stop ber-dir1"),
            ("docs/operations.md", "mqis promote ber-dir2"),
        ],
        before=_DOWN,
        replaced=[
            (r"^\. \.venv/bin/activate", '. "$(dirname "$(command -v mqis)")/activate"'),
            (r"2b0d61a5-6d0e-4a0f-9a44-1c9d1a5f0c11:0000000000000042", '"$change"'),
            (r"ber-dir2:0000a1b2", '"$request"'),
            (r"'LAB\\alice'", '"$MQIS_USER"'),
            (r"@2024-03-04T08:00", '@"$began"'),
        ],
        until={"mqis console": "http://127.0.0.1"},
        finds=["mqis diff"],
        printed=["5 of 5 servers up", "change forwarded", "C14\\testq"],
    ),
    Scenario(
        "console of an enterprise",
        [("docs/console.md", "mqis up --example")],
        before=_DOWN,
        until={"mqis console": "http://127.0.0.1"},
    ),
    # --- Active Directory ------------------------------------------------------------------------
    Scenario(
        "active directory",
        [
            ("docs/active-directory.md", "export MQIS_LDAP_USER"),
            ("", "mv estate.db site.db"),
            ("docs/active-directory.md", "ldapsearch"),
            ("docs/active-directory.md", "mqis export --ldif"),
            ("", f"{_AS_ADMINISTRATOR}; ldapdelete {_LDAP} 'CN=orders,CN=msmq,CN=WS1,{OU}'"),
            ("docs/active-directory.md", "mqis publish"),
        ],
        before=_PASSWORDS,
        replaced=[_CONTROLLER],
        finds=["mqis check", "mqis routes"],
        printed=["nothing was written: add --write", "1 object: is put back with its identifier"],
        real="samba",
    ),
    Scenario(
        "check and mirror",
        [("docs/active-directory-mirror.md", "*")],
        before=_PASSWORDS,
        replaced=[_CHILD, _CONTROLLER, *_LISTS],
        finds=["mqis estate check"],
        until={"mqis mirror": "change [0-9]", "mqis console": "http://127.0.0.1"},
        printed=["open_queue, 1 finding", "2 links, 3 settings\n"],
        real="samba",
    ),
    Scenario(
        "pass-through",
        [("docs/pass-through.md", "*")],
        before=f"{_PASSWORDS}\ncat > mqis.toml << 'END'\n{_PASS_THROUGH}END\n",
        until={"mqis serve": "^ready: "},
        finds=["mqis doctor"],
        real="samba",
    ),
    # --- Spark: make engines ---------------------------------------------------------------------
    Scenario(
        "pipeline",
        [("docs/pipeline.md", first) for first in _PIPELINE],
        replaced=[
            (
                r"--journals run --exports exports",
                "--journals demo/journals --exports demo/exports",
            ),
            (r"^mqis generate demo", "mqis generate demo --machines 6 --queues 20 --changes 100"),
            (r"^cd estate && ", 'cd estate; JAVA_HOME="$(cat "$ROOT/.venv/java-home")" '),
            (r"2024-03-05T12:00:00Z", "2100-01-01T00:00:00Z"),
        ],
        after="test -s ../report.pdf || test -s report.pdf",
        slow=True,
    ),
    Scenario(
        "check and mirror, with the pipeline",
        [("docs/active-directory-mirror.md", "*")],
        before=_PASSWORDS,
        replaced=[_CHILD, _CONTROLLER, *_LISTS, (r"2026-11-16T18:00:00Z", "2100-01-01T00:00:00Z")],
        finds=["mqis estate check"],
        until={"mqis mirror": "change [0-9]", "mqis console": "http://127.0.0.1"},
        after="test -s before.jsonl",
        real="samba",
        slow=True,
    ),
)
