"""Data that are compressed though their name does not say so."""

from __future__ import annotations

from papercuts.errors import DataError

_STARTS = {
    b"\x1f\x8b": ("gzip", ".gz", "gzip -dc"),
    b"\xfd7zXZ\x00": ("xz", ".xz", "xz -dc"),
    b"\x28\xb5\x2f\xfd": ("zstd", ".zst", "zstd -dc"),
}


def check_not_compressed(data: bytes, path: str) -> None:
    """Raise `DataError` for data that begin as a compressed file does."""
    for start, (kind, suffix, command) in _STARTS.items():
        if data.startswith(start):
            way = f"pipe it through {command}" if path == "-" else f"a name that ends in {suffix}"
            raise DataError(f"this looks like {kind}", path=path, expected=f"plain text; {way}")
