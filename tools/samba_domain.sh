#!/usr/bin/env bash
# A private Active Directory for tests and benchmarks: a Samba domain controller on loopback.
#
#   tools/samba_domain.sh provision TEMPLATE   make a forest in TEMPLATE (30 s, once)
#   tools/samba_domain.sh copy TEMPLATE DIR    a fresh forest in DIR (0.1 s)
#   tools/samba_domain.sh start DIR            serve it; returns as soon as LDAP answers (2 to 4 s)
#   tools/samba_domain.sh stop DIR             end it; DIR stays
#
# The domain is CORP.EXAMPLE (NetBIOS CORP), the host dc1.corp.example, the account Administrator with
# the password Passw0rd.1. LDAP listens on 127.0.0.1 and ::1, ports 389, 636, 3268 and 3269, Kerberos on
# 88; one domain at a time can be served. The certificate is DIR/private/tls/own.pem, and DIR/krb5.conf
# is for clients that use Kerberos. Everything that Samba writes stays below DIR.
# Exit codes: 1 it failed, 2 wrong usage, 3 Samba is missing or this is not root.
set -euo pipefail

realm=CORP.EXAMPLE domain=CORP host=dc1 dns=corp.example password=Passw0rd.1

fail() { echo "samba_domain.sh: $2" >&2; exit "$1"; }
usage() { fail 2 "usage: tools/samba_domain.sh provision|start|stop DIR, or copy TEMPLATE DIR"; }

require() {
    [[ $(id -u) -eq 0 ]] || fail 3 "only root can set the owners and open the ports that Samba needs"
    for program in samba samba-tool openssl ss; do
        command -v "$program" > /dev/null || fail 3 "$program is missing (Debian: apt install samba samba-ad-provision samba-dsdb-modules samba-vfs-modules winbind openssl iproute2)"
    done
}

# Rewrites the settings that name paths or services, so that nothing outside $1 is used. NTLM and
# Kerberos log on inside TLS too, as at a Windows domain controller; Samba up to 4.20 refuses that by default.
localise() {
    local dir=$1 conf=$1/etc/smb.conf
    grep -vE '^\s*(server services|log file|pid directory|ncalrpc dir|winbindd socket directory|ntp signd socket directory|tls .*|prefork children|ldap server require strong auth) *=' "$conf" > "$conf.kept"
    sed "/^\[global\]/r /dev/stdin" "$conf.kept" > "$conf" <<- SETTINGS
	server services = ldap, cldap, kdc
	log file = $dir/log/%m.log
	pid directory = $dir/run
	ncalrpc dir = $dir/run/ncalrpc
	winbindd socket directory = $dir/run/winbindd
	ntp signd socket directory = $dir/run/ntp
	tls keyfile = $dir/private/tls/own.key
	tls certfile = $dir/private/tls/own.pem
	tls cafile = $dir/private/tls/own.pem
	prefork children = 1
	ldap server require strong auth = allow_sasl_over_tls
	SETTINGS
    rm "$conf.kept"
    mkdir -p "$dir/run" "$dir/log" "$dir/cache"
}

# Samba's own certificate has no subjectAltName, which clients want.
certify() {
    mkdir -p "$1/private/tls"
    openssl req -x509 -newkey rsa:2048 -nodes -days 3650 -subj "/CN=$host.$dns" -set_serial 1 \
        -addext "subjectAltName=DNS:$host.$dns,DNS:localhost,IP:127.0.0.1" \
        -keyout "$1/private/tls/own.key" -out "$1/private/tls/own.pem" 2> /dev/null
    chmod 600 "$1/private/tls/own.key"
}

kerberos_of_clients() {
    cat > "$1/krb5.conf" <<- SETTINGS
	[libdefaults]
	 default_realm = $realm
	 dns_lookup_kdc = false
	 rdns = false
	 dns_canonicalize_hostname = false
	[realms]
	 $realm = {
	  kdc = 127.0.0.1:88
	 }
	SETTINGS
}

# The file system need not have extended attributes: xattr_tdb keeps them in a file.
provision() {
    local dir=$1
    rm -rf "$dir"
    mkdir -p "$dir"
    samba-tool domain provision --realm="$realm" --domain="$domain" --adminpass="$password" \
        --server-role=dc --dns-backend=NONE --use-rfc2307 --targetdir="$dir" --host-name="$host" \
        --host-ip=127.0.0.1 --base-schema=2012_R2 \
        --option="interfaces=lo" --option="bind interfaces only=yes" \
        --option="vfs objects=dfs_samba4 acl_xattr xattr_tdb" --option="xattr_tdb:file=$dir/xattr.tdb" \
        > "$dir/provision.log" 2>&1 || { tail -5 "$dir/provision.log" >&2; fail 1 "samba-tool cannot provision $dir"; }
    certify "$dir"
    kerberos_of_clients "$dir"
    localise "$dir"
    # Without DNS nobody registers the name that Kerberos clients ask for.
    samba-tool spn add "ldap/$host.$dns" "${host^^}\$" -s "$dir/etc/smb.conf" > /dev/null
}

copy() {
    local from=$1 to=$2
    [[ -f $from/etc/smb.conf ]] || fail 1 "$from has no forest: provision it first"
    rm -rf "$to"
    cp -a "$from" "$to"
    rm -rf "$to/run"
    sed -i "s#$from/#$to/#g; s#= $from\$#= $to#" "$to/etc/smb.conf"
    localise "$to"
}

listening() { ss -ltnH 'sport = :389' | grep -q '127\.0\.0\.1:389'; }

start() {
    local dir=$1
    listening && fail 1 "another server listens on 127.0.0.1:389: stop it first"
    samba -s "$dir/etc/smb.conf" -F --no-process-group > "$dir/log/stdout" 2>&1 < /dev/null &
    local pid=$!
    for _ in $(seq 1 240); do
        listening && exit 0
        kill -0 "$pid" 2> /dev/null || { tail -5 "$dir/log/stdout" >&2; fail 1 "Samba ended while it started"; }
        sleep 0.25
    done
    kill "$pid"
    fail 1 "Samba serves no LDAP after 60 s; see $dir/log"
}

stop() {
    local pidfile=$1/run/samba.pid
    [[ -f $pidfile ]] || exit 0
    local pid
    pid=$(cat "$pidfile")
    kill "$pid" 2> /dev/null || exit 0
    for _ in $(seq 1 120); do
        kill -0 "$pid" 2> /dev/null || listening || exit 0
        sleep 0.25
    done
    fail 1 "Samba (process $pid) did not end within 30 s"
}

[[ $# -ge 2 ]] || usage
dir=$(realpath -m "$2")
case $1/$# in
    provision/2) require; provision "$dir" ;;
    copy/3) require; copy "$dir" "$(realpath -m "$3")" ;;
    start/2) require; start "$dir" ;;
    stop/2) stop "$dir" ;;
    *) usage ;;
esac
