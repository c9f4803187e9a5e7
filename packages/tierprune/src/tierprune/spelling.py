"""What a name that is not known may have meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Give the known name that differs in case only, else the most similar one, if any is."""
    names = list(known)
    folded = name.casefold()
    same = next((each for each in names if each.casefold() == folded), None)
    return same or next(iter(get_close_matches(name, names, 1)), None)


def did_you_mean(name: str, known: Iterable[str], form: str) -> str:
    """Put the question into `form`, as in ` ({})`; nothing where no known name is similar."""
    near = nearest(name, known)
    return form.format(f"did you mean {near}?") if near else ""
