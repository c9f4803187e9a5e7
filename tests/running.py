"""Running the tools in tests, and what their `tests/manners.toml` say of how to call them."""

from __future__ import annotations

import json
import math
import os
import resource
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workspace import Package, packages


@dataclass(frozen=True)
class Reading:
    """A command that reads records, as a tool's `tests/manners.toml` describes it."""

    package: Package
    argv: list[str]
    good: str
    bad: str
    bad_line: int
    suffix: str = ".jsonl"
    stdin: bool = True
    carries: bool = False
    output: str = "json"

    def __str__(self) -> str:
        return f"{self.package.command}-{self.argv[0]}"


@dataclass(frozen=True)
class Call:
    """A command line of a tool, without the tool's name, and what comes on its stdin."""

    argv: list[str]
    stdin: bytes | None = None


@dataclass(frozen=True)
class Result:
    """How a process ended. `code` is what a shell would show."""

    code: int
    out: bytes
    err: str
    cpu_s: float = math.nan

    @property
    def text(self) -> str:
        """What it printed on stdout, as text."""
        return self.out.decode()


@dataclass(frozen=True)
class Runner:
    """Runs commands in a folder of their own, with every tool of the workspace on the PATH."""

    folder: Path
    env: Mapping[str, str]

    def __call__(
        self,
        *argv: str,
        stdin: bytes | int = subprocess.DEVNULL,
        timeout: float = 60,
    ) -> Result:
        """Run a command to its end."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        given = stdin if isinstance(stdin, bytes) else None
        ended = subprocess.run(
            argv,
            cwd=self.folder,
            env=self.env,
            capture_output=True,
            timeout=timeout,
            check=False,
            **({"input": given} if given is not None else {"stdin": stdin}),
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return Result(
            code=ended.returncode if ended.returncode >= 0 else 128 - ended.returncode,
            out=ended.stdout,
            err=ended.stderr.decode(),
            cpu_s=after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        )

    def many(self, package: Package, *calls: Call) -> list[Result]:
        """Run command lines of one tool, one after the other, at the cost of one start."""
        rows = []
        for number, call in enumerate(calls):
            stdin = os.devnull if call.stdin is None else self.file(f"{number}.in", call.stdin)
            rows.append({"argv": call.argv, "stdin": stdin})
        forks = Path(__file__).with_name("forks.py")
        argv = [sys.executable, str(forks), package.target, *package.search_path]
        ended = self(*argv, stdin=json.dumps(rows).encode())
        assert ended.code == 0, ended.err
        return [
            Result(
                code=row["code"],
                out=(self.folder / row["out"]).read_bytes(),
                err=(self.folder / row["err"]).read_text(encoding="utf-8"),
            )
            for row in json.loads(ended.out)
        ]

    def bash(self, script: str, *arguments: str, timeout: float = 60) -> Result:
        """Run a bash script under `set -euo pipefail`; `arguments` are its $1, $2, ..."""
        return self(
            "bash", "-c", f"set -euo pipefail\n{script}", "bash", *arguments, timeout=timeout
        )

    def python(self, package: Package, code: str) -> Result:
        """Run Python code that can import a tool; `target` is the tool's module:app."""
        head = f"import sys\nsys.path[:0] = {package.search_path}\ntarget = {package.target!r}\n"
        return self(sys.executable, "-c", head + code)

    def start(self, argv: Sequence[str], stdin: Any) -> subprocess.Popen[bytes]:
        """Start a command with pipes on stdout and stderr."""
        return subprocess.Popen(
            argv,
            cwd=self.folder,
            env=self.env,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def file(self, name: str, content: str | bytes) -> str:
        """Write a file into the folder and give its name."""
        data = content.encode() if isinstance(content, str) else content
        (self.folder / name).write_bytes(data)
        return name


def manners(package: Package) -> dict[str, Any]:
    """How a tool's commands are called: its `tests/manners.toml`."""
    path = package.folder / "tests" / "manners.toml"
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def readings() -> list[Reading]:
    """The commands of all tools that read records."""
    return [
        Reading(package, **entry)
        for package in packages()
        for entry in manners(package).get("filter", [])
    ]
