# One recipe per daily act. They call pytest, ruff and mypy plainly: run them in the workspace's
# environment, as in `tools/uvw run --all-packages just test`.

set positional-arguments
set shell := ["bash", "-euo", "pipefail", "-c"]

# Python keeps the compiled files of what it imports: every command that a test starts is quicker.
export PYTHONDONTWRITEBYTECODE := ""

uvw := justfile_directory() / "tools" / "uvw"
sources := "shared/src packages/*/src"

_list:
    @just --list --unsorted

# make or refresh .venv and the lock
setup:
    {{ uvw }} sync --all-packages

# the fast tests: of everything, or of the tools named
test *TOOL:
    pytest -n 2 --dist worksteal -m "not slow" --durations=15 "${@/#/--tool=}"

# the slow tests: of everything, or of the tools named
test-slow *TOOL:
    pytest -m slow --durations=15 "${@/#/--tool=}"

# the slow tests of what differs from BASE (see tools/changed.py)
slow-changed *BASE:
    #!/usr/bin/env bash
    set -euo pipefail
    changed=$(python tools/changed.py "$@")
    mapfile -t names <<< "$changed"
    if [ -z "$changed" ]; then
        echo "nothing changed that has slow tests"
        exit 0
    fi
    echo "slow tests of: ${names[*]}"
    # pytest exits 5 where it selected nothing: what changed may have no slow test
    pytest -m slow --durations=15 "${names[@]/#/--tool=}" || [ $? -eq 5 ]

# ruff, formatting, types, and the generated parts of the READMEs
lint:
    ruff check
    ruff format --check
    mypy {{ sources }} tools/template/src
    mypy tools/*.py
    python tools/docs.py --check
    python tools/catalogue.py --check

# format, and fix what can be fixed
fmt:
    ruff check --fix
    ruff format

# the demo of a tool
demo TOOL:
    "$1" demo

# the measurements of a tool; one that names its peers inline gets an environment of its own
bench TOOL:
    #!/usr/bin/env bash
    set -euo pipefail
    for script in $(grep -l '^if __name__ == "__main__":' packages/"$1"/bench/*.py); do
        echo "== $script"
        if grep -q '^# /// script' "$script"; then
            {{ uvw }} run --script "$script"
        else
            python "$script"
        fi
    done

# begin a tool
new NAME:
    python tools/new_tool.py "$1"

# refresh the help blocks of the READMEs
docs:
    python tools/docs.py

# refresh the README's table of tools
catalogue:
    python tools/catalogue.py
