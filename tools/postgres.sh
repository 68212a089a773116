#!/usr/bin/env bash
# A private PostgreSQL server for tests and benchmarks.
#
#   tools/postgres.sh start DIR   make a server in DIR (or start the one that is there), print how
#                                 to connect: host=127.0.0.1 port=... user=mqis dbname=postgres
#   tools/postgres.sh stop DIR    stop it; DIR stays
#
# Anyone on this machine may connect, so use it only for test data. Commits are flushed as on a real
# server. Exit codes: 1 it failed, 2 wrong usage, 3 PostgreSQL is missing.
set -euo pipefail

fail() { echo "postgres.sh: $2" >&2; exit "$1"; }

[[ $# -eq 2 && $1 =~ ^(start|stop)$ ]] || fail 2 "usage: tools/postgres.sh start|stop DIR"
action=$1
[[ $2 == /* ]] && dir=$2 || dir=$PWD/$2
dir=${dir%/}

find_binaries() {
    local candidate
    while read -r candidate; do
        [[ -x $candidate/initdb && -x $candidate/pg_ctl ]] && { echo "$candidate"; return; }
    done < <(
        ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -rV
        command -v initdb | xargs -r dirname 2>/dev/null  # the reader may have enough already
    )
    return 1
}

bin=$(find_binaries) || fail 3 "PostgreSQL is not installed (Debian: apt install postgresql)"

# The server refuses to run as root; postgres is the package's user, nobody is everywhere.
user=""
if [[ $(id -u) -eq 0 ]]; then
    for user in postgres nobody; do id "$user" >/dev/null 2>&1 && break; done
fi

as_server() {
    if [[ -n $user ]]; then
        setpriv --reuid "$user" --regid "$(id -g "$user")" --clear-groups -- "$@"
    else
        "$@"
    fi
}

data=$dir/data

running() { as_server "$bin/pg_ctl" -D "$data" status >/dev/null 2>&1; }
setting() { sed -n "s/^$1 = //p" "$data/postgresql.conf" | tail -n 1; }

if [[ $action == stop ]]; then
    [[ -d $data ]] && cd "$dir" && running || exit 0
    # No final checkpoint: the log has everything committed, and the next start replays it.
    as_server "$bin/pg_ctl" -D "$data" -m immediate -w stop >/dev/null
    exit 0
fi

free_port() {
    local port
    while port=$((20000 + RANDOM % 10000)); (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do
        :
    done
    echo "$port"
}

# A socket's path has at most 107 bytes; its name here is .s.PGSQL.NNNNN.
((${#dir} <= 90)) || fail 1 "$dir: the path is too long for a socket, 90 characters at most"

if [[ ! -f $data/PG_VERSION ]]; then
    [[ ! -e $dir || -z $(ls -A -- "$dir") ]] || fail 1 "$dir: is not empty"
    mkdir -p -- "$dir"
    [[ -z $user ]] || chown "$user" -- "$dir"
fi
chmod 700 -- "$dir"
as_server test -w "$dir" -a -x "$dir" ||
    fail 1 "$dir: user $user cannot reach it; take a directory below one that everyone may enter"
cd "$dir"

if [[ ! -f $data/PG_VERSION ]]; then
    as_server "$bin/initdb" -D "$data" -U mqis -A trust -E UTF8 --locale=C --no-sync >log 2>&1 ||
        fail 1 "initdb failed: $(tail -n 3 log)"
    cat >>"$data/postgresql.conf" <<CONF
listen_addresses = '127.0.0.1'
unix_socket_directories = '$dir'
port = $(free_port)
fsync = on
shared_buffers = 16MB
max_connections = 60
CONF
fi

running || as_server "$bin/pg_ctl" -D "$data" -l server.log -w -t 300 start >/dev/null ||
    fail 1 "the server did not start: $(tail -n 3 server.log)"
echo "host=127.0.0.1 port=$(setting port) user=mqis dbname=postgres"
