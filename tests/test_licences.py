"""What users are asked to install is free in the way that DESIGN.md allows.

Permissive, MPL and LGPL licences may be required; GPL ones only by an extra; every distribution in
the lock is known.
"""

from __future__ import annotations

import re
import tomllib
from importlib import metadata

import pytest

import catalogue
from workspace import ROOT, packages

# Each word that may stand in a licence expression or classifier, and what it allows.
REQUIRED_MAY_BE = re.compile(
    r"0BSD|Apache|BSD|BSL-1\.0|CC0|CNRI-Python|HPND|ISC|MIT|PSF|Python Software Foundation|"
    r"Public Domain|Unlicense|[Zz]lib|"
    r"LGPL|Lesser General Public|MPL|Mozilla"
)
GPL = re.compile(r"(?<!L)GPL|(?<!Lesser )General Public License")

# Distributions whose metadata say too little, with what their licence file says.
BY_HAND = {
    "cuda-toolkit": "an empty distribution that only names NVIDIA's others",
}
# NVIDIA's own binaries are proprietary. Only torch's CUDA build brings them; nothing here names
# them, and the CPU build of torch comes without.
NVIDIA = re.compile(r"^(nvidia-|cuda-)")


def licence(name):
    """Give all that the metadata of an installed distribution say of its licence, in one text."""
    found = metadata.metadata(name)
    said = [found.get("License-Expression") or "", (found.get("License") or "").partition("\n")[0]]
    said += [c for c in found.get_all("Classifier") or [] if c.startswith("License ::")]
    return " ".join(filter(None, said))


def locked():
    """List the distributions in the lock that are not the workspace's own."""
    lock = tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))
    return {entry["name"] for entry in lock["package"] if "registry" in entry["source"]}


def installed():
    return {catalogue.canonicalize_name(found.name) for found in metadata.distributions()}


def fault(name):
    """Say what is wrong with a distribution that somebody must install; "" if nothing is."""
    said = licence(name)
    if name in BY_HAND or NVIDIA.match(name):
        return ""
    if GPL.search(said):
        return f"{name} is under {said}"
    return "" if REQUIRED_MAY_BE.search(said) else f"{name}: unknown licence {said!r}"


def test_package_ships_its_licence(package):
    assert (package.folder / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    assert package.project["license"] == "Apache-2.0"
    assert package.project["license-files"] == ["LICENSE"]


def test_required_licences(package):
    base = catalogue.closure(package.distribution)
    faults = [fault(name) for name in sorted(base - {p.distribution for p in packages()})]
    assert list(filter(None, faults)) == []
    brings_torch = "torch" in base
    assert brings_torch or not [name for name in base if NVIDIA.match(name)]


def test_every_locked_licence_is_known():
    """Also those of extras and of what the developers use; GPL is allowed there."""
    faults = [fault(name) for name in sorted(locked() & installed())]
    assert [text for text in filter(None, faults) if "unknown" in text] == []


def test_nothing_is_installed_here_that_the_lock_does_not_name():
    own = {p.distribution for p in packages()}
    stray = {"pip", "setuptools", "wheel"}
    assert installed() - locked() - own - stray == set()


@pytest.mark.parametrize(
    ("said", "allowed"),
    [
        ("MIT", True),
        ("License :: OSI Approved :: Mozilla Public License 2.0 (MPL 2.0)", True),
        ("LGPL-2.1-or-later", True),
        ("GNU Lesser General Public License v3", True),
        ("GPL-3.0-or-later", False),
        ("License :: OSI Approved :: GNU General Public License v3 (GPLv3)", False),
        ("AGPL-3.0", False),
        ("LicenseRef-Proprietary", False),
        ("", False),
    ],
)
def test_the_rule_itself(monkeypatch, said, allowed):
    monkeypatch.setitem(globals(), "licence", lambda _name: said)
    assert (fault("something") == "") is allowed
