"""Names in double quotes, as the options read them: JSON strings, or quotes doubled as in CSV."""

from __future__ import annotations

import json
import re
from collections.abc import Collection

QUOTED = r'"(?:[^"\\]|\\.|"")*"'

_ITEM = re.compile(
    rf"\s*(?:(?P<quoted>{QUOTED})(?P<rest>[^,]*)|(?P<bare>[^,]*))(?:,|\Z)", re.DOTALL
)


def unquote(text: str, known: Collection[str] = ()) -> str:
    r"""Take the quotes from a name that has them, as in `"a, b"`, `"say \"z\"."`, `"say ""z""."`.

    An edge list writes such names as JSON strings, a CSV file doubles quotes inside. Where a name
    can be read both ways, the one that is `known` counts, else JSON's.
    """
    if len(text) < 2 or not (text.startswith('"') and text.endswith('"')):
        return text
    doubled = text[1:-1].replace('""', '"')
    try:
        value = json.loads(text, strict=False)
    except ValueError:
        return doubled
    return doubled if value not in known and doubled in known else str(value)


def split_list(text: str, known: Collection[str] = ()) -> list[str]:
    """Divide a list at the commas outside quotes; what follows a quoted name stays with it."""
    items, at = [], 0
    while at < len(text):
        found = _ITEM.match(text, at)
        assert found is not None  # noqa: S101 (a bare item may be anything)
        at = found.end()
        if found["quoted"] is None:
            items.append(found["bare"].strip())
        else:
            items.append((unquote(found["quoted"], known) + found["rest"]).strip())
    return items
