"""The finished tiers of a search that may be cut short: `FILE.part`, from which it goes on.

    {"format": 1, "of": {"tool": ..., "data": SHA-256, "tiers": [...], ...}, "finished": [...]}

The file is plain JSON and is replaced as a whole after each tier, so that it is never half written.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from papercuts.errors import DataError, OutputError, UsageError
from papercuts.files import open_input, open_output, written_directly
from papercuts.log import get_logger
from tierprune.discovery import Contradiction, Finished, TierCost
from tierprune.pag import Mark

_FORMAT = 1
_logger = get_logger(__name__)


class Unfinished:
    """The file beside `output` that holds the tiers finished so far.

    With an `output` that is written directly (`-`, a device) nothing is kept. Raises `UsageError`
    for `resume` there, and `OutputError` where an earlier run left a file and neither `resume` nor
    `force` says what to do with it.
    """

    def __init__(self, output: str, *, resume: bool, force: bool) -> None:
        self.finished: list[Finished] = []
        self.part: Path | None = None
        self._resume, self._of = resume, {}  # type: tuple[bool, Mapping[str, Any]]
        if written_directly(output):
            if resume:
                raise UsageError("--resume needs --output FILE: there is no file to go on with")
            return
        place = Path(os.path.realpath(output))
        self.part = place.with_name(place.name + ".part")
        if self.part.exists() and not (resume or force):
            raise OutputError(
                f"{self.part}: an earlier run was cut short"
                " (--resume goes on with it, --force starts again)"
            )

    def begin(self, of: Mapping[str, Any]) -> None:
        """Say what is being learnt, and with `resume` read what is there.

        Raises `DataError` for a file that cannot be gone on with: torn, or of other data or
        options.
        """
        self._of = json.loads(json.dumps(of))
        if not self._resume or self.part is None:
            return
        if self.part.exists():
            self.finished = _read(self.part, self._of)
        else:
            _logger.info("there is no %s to go on with: starting anew", self.part)

    def keep(self, tier: Finished) -> None:
        """Add a tier; the file is whole before and after."""
        self.finished.append(tier)
        if self.part is None:
            return
        content = {
            "format": _FORMAT,
            "of": self._of,
            "finished": [_to_json(each) for each in self.finished],
        }
        with open_output(self.part, force=True) as out:
            out.write(json.dumps(content, ensure_ascii=False).encode("utf-8", "surrogatepass"))
            out.write(b"\n")

    def remove(self) -> None:
        """Drop the file: the result is written."""
        if self.part is not None:
            self.part.unlink(missing_ok=True)

    @property
    def kept(self) -> bool:
        """Say whether a run that is cut short now leaves something."""
        return self.part is not None and bool(self.finished)

    def describe(self) -> str:
        """Say what a run that is cut short leaves."""
        if self.part is None:
            return "nothing was kept (with --output FILE finished tiers are)"
        if not self.finished:
            return "nothing was kept: no tier was finished yet"
        many = f"{len(self.finished)} finished tier{'s' * (len(self.finished) > 1)}"
        return f"{many} kept in {self.part} (--resume goes on with it)"


def _read(part: Path, of: Mapping[str, Any]) -> list[Finished]:
    with open_input(part) as file:
        data = file.read()
    try:
        content = json.loads(data)
        kept, finished = content["of"], [_from_json(each) for each in content["finished"]]
        if content["format"] != _FORMAT:
            raise ValueError("another format")  # noqa: TRY301 (it ends as the others do)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise DataError(
            "not the whole record of an unfinished run",
            path=part,
            expected="--force to start again",
        ) from None
    for key in of:
        if kept.get(key) != of[key]:
            raise DataError(
                f"an unfinished run with other {_WORDS.get(key, key)}",
                path=part,
                expected="the same data and options; --force starts again",
            )
    return finished


_WORDS = {"data": "data", "max_cond": "--max-cond"} | {
    key: f"--{key}" for key in ("tiers", "test", "alpha", "missing", "truth")
}


def _to_json(tier: Finished) -> dict[str, Any]:
    return {
        **tier.cost._asdict(),
        "capped": tier.capped,
        "edges": [[a, b, int(at_a), int(at_b)] for a, b, at_a, at_b in tier.edges],
        "sepsets": [[a, b, [*given]] for a, b, given in tier.sepsets],
        "contradictions": [[*each] for each in tier.contradictions],
    }


def _from_json(read: Mapping[str, Any]) -> Finished:
    return Finished(
        TierCost(*(read[key] for key in TierCost._fields)),
        tuple((a, b, Mark(at_a), Mark(at_b)) for a, b, at_a, at_b in read["edges"]),
        tuple((a, b, tuple(given)) for a, b, given in read["sepsets"]),
        tuple(Contradiction(*each) for each in read["contradictions"]),
        bool(read["capped"]),
    )
