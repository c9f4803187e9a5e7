"""The names that the package hands out are its functions and classes, however it was imported."""

import pkgutil
from importlib import import_module
from inspect import ismodule

import bitsched


def test_no_public_name_is_a_module() -> None:
    """A module of the same name would take the function's place once it is imported."""
    modules = {module.name for module in pkgutil.iter_modules(bitsched.__path__)}
    assert modules.isdisjoint(bitsched.__all__)
    for home in set(bitsched._HOMES.values()) - {"bits"}:
        import_module(f"bitsched.{home}")
    for name in set(bitsched.__all__) - {"Bits", "compare_bits"}:
        assert not ismodule(getattr(bitsched, name))


def test_the_example_of_the_readme() -> None:
    from bitsched import Costs, bounds, check, make_plan, make_shape, simulate

    shape = make_shape("causal", n="16", heads=8)
    run = simulate(make_plan(shape, "sym", costs=Costs(5, 1)), Costs(5, 1))
    assert run.makespan == bounds(shape, Costs(5, 1), 16).best == 8 * 17 * 6 / 2
    assert {finding.verdict for finding in check(make_plan(shape, "sym"))} == {"yes"}
