"""Runs many command lines of one tool, each in a fork of a process that has imported it once.

    python tests/forks.py seesaw.cli:app FOLDER... < calls.json > results.json

The folders are those from which the tool is imported. A call is `{"argv": [...], "stdin": FILE}`,
a result `{"code": ..., "out": FILE, "err": FILE}`. It is as good as a process of its own, without
paying for a start each time.
"""

from __future__ import annotations

import contextlib
import gc
import io
import json
import os
import sys
from importlib import import_module

import typer

WRITE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC


def run(app, number, call):
    """Run one command line in a fork."""
    gc.freeze()  # a collection in the child would copy every page of the parent
    names = {"out": f"{number}.out", "err": f"{number}.err", "modules": f"{number}.modules"}
    child = os.fork()
    if child == 0:
        os.dup2(os.open(call["stdin"], os.O_RDONLY), 0)
        os.dup2(os.open(names["out"], WRITE), 1)
        os.dup2(os.open(names["err"], WRITE), 2)
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
        code = app.run(call["argv"])
        with open(names["modules"], "w", encoding="utf-8") as file:  # noqa: PTH123
            json.dump(worth_keeping(app), file)
        os._exit(code)
    _, status = os.waitpid(child, 0)
    with open(names.pop("modules"), encoding="utf-8") as file:  # noqa: PTH123
        for name in json.load(file):
            import_module(name)  # so that the forks to come have it already
    return {"code": os.waitstatus_to_exitcode(status), **names}


def worth_keeping(app):
    """List the modules of the tool that this fork has imported; torch does not survive forks."""
    if "torch" in sys.modules:
        return []
    ours = {app.tool, "papercuts"}
    return [name for name in sys.modules if name.partition(".")[0] in ours]


def main():
    sys.path[:0] = sys.argv[2:]
    module, _, attribute = sys.argv[1].partition(":")
    app = getattr(import_module(module), attribute)
    calls = json.load(sys.stdin)
    with contextlib.redirect_stdout(io.StringIO()):
        for name in typer.main.get_command(app).commands:
            app.run([name, "--version"])  # brings in what Typer imports late
    json.dump([run(app, number, call) for number, call in enumerate(calls)], sys.stdout)


if __name__ == "__main__":
    main()
