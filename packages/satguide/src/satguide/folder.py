"""A folder of CNF files as a source of training formulas."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from papercuts.errors import DataError
from papercuts.log import get_logger
from papercuts.parallel import seed_for
from satguide.cnf import CNF
from satguide.dimacs import formula_files, load

_VALIDATION_SHARE = 0.2  # at most, of the files


class Folder:
    """The CNF files of a folder: some are kept for validation, the rest is passed over and over.

    Kept are `validation` files, but no more than a fifth. Which they are, and the order of each
    pass, depend on the seed and on the names that are there. Raises `InputError` where
    there is no such folder or nothing in it, and `DataError` where it holds but one formula.
    """

    def __init__(self, path: str, validation: int = 200) -> None:
        self.path = path
        self._validation = validation
        self._files = formula_files(path)
        self._seen: set[Path] = set()
        if len(self._files) < 2:
            raise DataError(f"{path}: one formula, but training needs at least two")

    def training(self, seed: int, first: int, count: int) -> list[CNF]:
        """Give the training formulas `first` to `first + count - 1` of the endless passes."""
        files, _ = self._split(seed)
        orders: dict[int, list[int]] = {}
        chosen = []
        for index in range(first, first + count):
            turn, place = divmod(index, len(files))
            if turn not in orders:
                random = np.random.default_rng(seed_for(seed, turn + 1))
                orders[turn] = random.permutation(len(files)).tolist()
            chosen.append(self._load(files[orders[turn][place]]))
        return chosen

    def validation(self, seed: int, count: int) -> list[CNF]:
        """Give `count` of the formulas that are never trained on, or as many as were kept."""
        _, kept = self._split(seed)
        return [self._load(path) for path in kept[:count]]

    def digest(self) -> str:
        """Give the SHA-256 of the files' names: with others, a seed keeps others for validation."""
        names = "".join(f"{path.name}\0" for path in self._files)
        return hashlib.sha256(names.encode("utf-8", "surrogateescape")).hexdigest()

    def _load(self, path: Path) -> CNF:
        """Read a file; what the reader has to say of it is said the first time only."""
        if path in self._seen:
            with _silent():
                return load(str(path))
        self._seen.add(path)
        return load(str(path))

    def _split(self, seed: int) -> tuple[list[Path], list[Path]]:
        random = np.random.default_rng(seed_for(seed, 0))
        order = random.permutation(len(self._files)).tolist()
        kept = max(1, min(self._validation, int(_VALIDATION_SHARE * len(order))))
        # Names often begin with a size, so the kept ones stay in random order: any first few of
        # them are of all sizes.
        return [self._files[i] for i in sorted(order[kept:])], [
            self._files[i] for i in order[:kept]
        ]


@contextmanager
def _silent() -> Iterator[None]:
    """Keep the reader's warnings back."""
    reader = get_logger("satguide.dimacs")

    def warned(record: logging.LogRecord) -> bool:
        return record.levelno > logging.WARNING

    reader.addFilter(warned)
    try:
        yield
    finally:
        reader.removeFilter(warned)
