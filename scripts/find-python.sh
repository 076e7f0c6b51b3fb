#!/bin/sh
# Print the path of a CPython >= 3.11 that can make virtual environments, or say what is missing.
# $PYTHON, where set, is the only candidate.
set -eu

suits='
import sys
if sys.implementation.name != "cpython" or sys.version_info < (3, 11):
    print(f"{sys.implementation.name} {sys.version.split()[0]}")
    sys.exit(1)
'
found=""
for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11 python}; do
    # A version manager's stand-in for a version that is not installed exists but does not run.
    if "$candidate" -c '' >/dev/null 2>&1; then
        if version=$("$candidate" -c "$suits"); then
            if ! "$candidate" -c 'import ensurepip, venv' >/dev/null 2>&1; then
                echo "error: $candidate cannot make virtual environments (module venv or ensurepip is missing)." >&2
                echo "       On Debian and Ubuntu: apt install python3-venv" >&2
                exit 1
            fi
            "$candidate" -c 'import sys; print(sys.executable)'
            exit 0
        fi
        found="$found
         $candidate is $version"
    fi
done
{
    echo "error: fhelium needs CPython 3.11 or newer, and none was found${PYTHON:+ at PYTHON=$PYTHON}.$found"
    echo "       Get it from your system (for example: apt install python3 python3-venv) or https://www.python.org/downloads/,"
    echo "       or name one: make PYTHON=/path/to/python3 ..."
} >&2
exit 1
