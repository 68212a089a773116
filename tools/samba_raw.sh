#!/usr/bin/env bash
# Samba's raw protocol tests against our RPC server: tools/samba_raw.sh [--kerberos] [TEST ...]
# Samba's torture tests of mapper and management:    tools/samba_raw.sh --torture
#
# Prints "ok NAME", "failed NAME reason" or "skipped NAME" for each. docs/interop.md lists the failing
# ones and the reasons. Exit code: 0 if the tests could be run, 77 if not.
#
# Needs Debian's python3-samba, which has the tests, and port 135 of a loopback address (root, or
# CAP_NET_BIND_SERVICE). --kerberos sets up a KDC in a temporary directory: krb5-kdc,
# krb5-admin-server, and mqis[kerberos] (make kerberos), here or in the venv of PYTHON=.
# --torture needs samba-testsuite.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PATH:/usr/sbin:/sbin"

address=${ADDRESS:-127.0.135.2}
python=${PYTHON:-.venv/bin/python}
system_python=${SYSTEM_PYTHON:-/usr/bin/python3}
realm=DOM.TEST
kerberos= torture=
case "${1:-}" in
    --kerberos) kerberos=yes && shift ;;
    --torture) torture=yes && shift ;;
esac

cannot() {
    echo "$*" >&2
    exit 77
}

if [ -n "$torture" ]; then
    command -v smbtorture > /dev/null || cannot "there is no smbtorture (Debian: samba-testsuite)"
else
    "$system_python" -c 'import samba.tests.dcerpc.raw_protocol' 2> /dev/null ||
        cannot "Samba's tests are not installed (Debian: python3-samba)"
fi

work=$(mktemp -d)
started=()
finish() {
    exec 3>&- || true
    [ "${#started[@]}" = 0 ] || kill "${started[@]}" 2> /dev/null || true
    wait 2> /dev/null || true
    rm -rf "$work"
}
trap finish EXIT

printf '[global]\nworkgroup = DOM\nrealm = %s\n' "$realm" > "$work/smb.conf"
export KRB5_CONFIG="$work/krb5.conf"
cat > "$KRB5_CONFIG" << END
[libdefaults]
    default_realm = $realm
    dns_lookup_kdc = false
    dns_lookup_realm = false
    dns_canonicalize_hostname = false
    rdns = false
    udp_preference_limit = 1
[realms]
    $realm = {
        kdc = $address:10088
    }
END

keytab=()
if [ -n "$kerberos" ]; then
    command -v krb5kdc kdb5_util kadmin.local > /dev/null ||
        cannot "there is no KDC (Debian: krb5-kdc krb5-admin-server)"
    "$python" -c 'from mqis.runtime.authentication.kerberos import available; exit(not available())' ||
        cannot "$python has no mqis[kerberos] (make kerberos)"
    export KRB5_KDC_PROFILE="$work/kdc.conf"
    cat > "$KRB5_KDC_PROFILE" << END
[kdcdefaults]
    kdc_listen = $address:10088
    kdc_tcp_listen = $address:10088
[realms]
    $realm = {
        database_name = $work/principal
        key_stash_file = $work/stash
    }
END
    kdb5_util create -r "$realm" -s -P master > /dev/null 2>&1
    for command in "addprinc -pw secret user" "addprinc -randkey host/LAB" \
        "addprinc -randkey host/lab" "ktadd -k $work/keytab host/LAB host/lab"; do
        kadmin.local -r "$realm" -q "$command" > /dev/null 2>&1
    done
    krb5kdc -n 2> "$work/kdc.log" &
    started+=($!)
    keytab=(--keytab "$work/keytab")
fi

# The server ends when its input ends, so it cannot outlive this script.
mkfifo "$work/input"
"$python" tools/samba_raw_server.py "$address" "${keytab[@]}" \
    < "$work/input" > "$work/server" 2> "$work/server-errors" &
server=$!
started+=("$server")
exec 3> "$work/input"
for _ in $(seq 300); do
    [ -s "$work/server" ] && break
    kill -0 "$server" 2> /dev/null || cannot "$(tail -n 1 "$work/server-errors")"
    sleep 0.1
done
[ -s "$work/server" ] || cannot "the server at $address does not start"

if [ -n "$torture" ]; then
    for suite in rpc.mgmt rpc.epmapper; do
        smbtorture --configfile="$work/smb.conf" -U% "ncacn_ip_tcp:$address" "$suite" 3>&- || true
    done 2> /dev/null | sed -n 's/^success: /ok /p; s/^\(failure\|error\): \([^ ]*\).*/failed \2/p'
else
    SERVER=$address TARGET_HOSTNAME=LAB DOMAIN=DOM REALM=$realm USERNAME=user PASSWORD=secret \
        MAX_NUM_AUTH=20 SMB_CONF_PATH=$work/smb.conf \
        "$system_python" tests/interop/rpc_samba_raw.py "$@" 3>&-
fi
if [ -s "$work/server-errors" ]; then
    echo "the server complained:" >&2
    cat "$work/server-errors" >&2
fi
