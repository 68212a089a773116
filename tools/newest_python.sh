#!/bin/sh
# Prints the newest Python of this machine, if it is newer than the given one: those on the path, and
# those that pyenv keeps. Prints nothing if there is none.
#
# Usage: tools/newest_python.sh .venv/bin/python
version='import ssl, sqlite3, sys, venv; print("%d %d" % sys.version_info[:2])'
than=$("$1" -c "$version") || exit 1
for python in python3.15 python3.14 python3.13 python3.12 "$HOME"/.pyenv/versions/3.*/bin/python3; do
    found=$("$python" -c "$version" 2> /dev/null) && echo "$found $python"
done | sort -k1,1n -k2,2n | tail -n 1 | while read -r major minor python; do
    [ "$minor" -gt "${than#* }" ] && echo "$python"
done
exit 0
