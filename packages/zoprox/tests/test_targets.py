"""Functions of the user's own file, and the checks that all targets go through."""

from __future__ import annotations

import time

import numpy as np
import pytest

from papercuts.errors import DataError, InputError, MissingError, TryLaterError, UsageError
from zoprox.python_target import PythonTarget
from zoprox.targets import Checked, Target, guessed, open_target

POINTS = np.random.default_rng(4).normal(size=(50, 3))
HALF = (POINTS**2).sum(1) / 2
AWK = "awk '{ s = 0; for (i = 1; i <= NF; i++) s += $i * $i; printf \"%.17g\\n\", s / 2 }'"


@pytest.fixture
def model(tmp_path):
    """Write a Python file and give its path; another name for each, as users have."""
    count = 0

    def write(text, name="model"):
        nonlocal count
        count += 1
        path = tmp_path / f"{name}{count}.py"
        path.write_text(text if text.startswith("#") else f"import numpy as np\n{text}")
        return str(path)

    return write


def ask(spec, points=POINTS, **options):
    with PythonTarget(spec, **options) as target:
        return target(points)


BODIES = [
    "return (x**2).sum(1) / 2",
    "return (x**2).sum(1, keepdims=True) / 2",
    "return np.sum(x**2, axis=-1) / 2",
    "return sum(v**2 for v in x.T) / 2",
    "return np.sum(x**2) / 2",
    "return x @ x / 2",
    "return (x[0]**2 + x[1]**2 + x[2]**2) / 2",
    "return x[0]**2 / 2 + x[1]**2 / 2 + x[2]**2 / 2 if x[0] > -9 else 0",
    "a, b, c = x; return float(a * a + b * b + c * c) / 2",
    "return [sum(v * v for v in p) / 2 for p in x]",
    "return np.float32(0) + x @ np.eye(3) @ x / 2",
]


@pytest.mark.parametrize("body", BODIES)
def test_all_rows_at_once_or_one_point(model, body):
    values = ask(f"{model(f'def f(x): {body}')}:f")
    np.testing.assert_allclose(values, HALF, rtol=1e-12)


@pytest.mark.parametrize("count", [1, 2, 3, 4])
@pytest.mark.parametrize("dim", [1, 2, 3])
def test_few_points_are_told_apart_too(model, count, dim):
    points = np.random.default_rng(5).normal(size=(count, dim))
    path = model("def rows(x): return x[:, 0]**2\ndef point(x): return x[0]**2")
    for name in ("rows", "point"):
        np.testing.assert_array_equal(ask(f"{path}:{name}", points), points[:, 0] ** 2)


def test_one_point_at_a_time_is_said_once(model, caplog):
    caplog.set_level("INFO")
    with PythonTarget(f"{model('def f(x): return float(x[0])')}:f") as target:
        target(POINTS)
        target(POINTS)
    assert [r.message for r in caplog.records] == [
        "f takes one point: it is called for each (faster: all rows at once)"
    ]


@pytest.mark.slow
def test_pieces_do_not_change_values_and_processes_neither(model):
    path = model("def f(x): return np.exp(x).sum(1)")
    points = np.random.default_rng(6).normal(size=(5000, 3))
    expected = np.exp(points).sum(1)
    for jobs in (1, 2):
        np.testing.assert_array_equal(ask(f"{path}:f", points, jobs=jobs), expected)


def test_what_it_prints_is_no_data(model, capsys):
    path = model("print('loading')\ndef f(x):\n    print('called')\n    return x[:, 0]")
    ask(f"{path}:f")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "loading\ncalled\n" in captured.err


def test_it_finds_what_lies_beside_it_and_leaves_nothing(model, tmp_path):
    (tmp_path / "beside_zoprox_target.py").write_text("SCALE = 3.0\n")
    path = model("from beside_zoprox_target import SCALE\ndef f(x): return SCALE * x[:, 0]")
    np.testing.assert_array_equal(ask(f"{path}:f"), 3 * POINTS[:, 0])
    assert not list(tmp_path.glob("__pycache__/model*"))


def test_a_dataclass_in_the_file_finds_its_module(model):
    text = "from dataclasses import dataclass\n@dataclass\nclass A:\n    k: 'float' = 2.0\n"
    path = model(text + "def f(x): return A().k * x[:, 0]")
    np.testing.assert_array_equal(ask(f"{path}:f"), 2 * POINTS[:, 0])


# What goes wrong


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("def f(x):\n    return 1 / 0", 3, "ZeroDivisionError: division by zero"),
        (
            "def f(x):\n    y = 1\n    return g(y)\ndef g(y):\n    raise KeyError(y)",
            6,
            "KeyError: 1",
        ),
        ("def f(x)\n    return x", 2, "SyntaxError: expected ':'"),
        ("import no_such_module_here", 2, "ModuleNotFoundError: No module named"),
        ("raise ValueError('two\\nlines')", 2, "ValueError: two lines"),
        ("def f(x):\n    return np.linalg.inv(np.zeros((2, 2)))", 3, "LinAlgError: Singular"),
        ("def f(x):\n    x[0] = 1\n    return x[:, 0]", 3, "ValueError: assignment destination is"),
        (
            "def f(x):\n    if x[0] > 0:\n        return open('/no/such')\n    return 1 / 0",
            None,
            "Err",
        ),
        ("def f(x):\n    return no_such", 3, "NameError: name 'no_such' is not defined"),
    ],
)
def test_an_exception_inside_is_told_with_its_line(model, text, line, message):
    path = model(text)
    points = POINTS.copy()
    points.flags.writeable = False
    with pytest.raises(DataError) as caught:
        ask(f"{path}:f", points)
    where = f"{path}:{line}: " if line else f"{path}:"
    assert str(caught.value).startswith(where)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return None", "NoneType 'None'"),
        ("return x", r"shape \[4, 3\]"),
        ("return x[:-1, 0]", r"shape \[3\]"),
        ("return 'text'", "str 'text'"),
        ("return 1j * x[:, 0]", "complex128"),
        ("exit(3)", r"called exit\(3\)"),
        ("return f(x)", "calls itself without end"),
        ("return np.zeros(len(x) + (len(x) == 2))", "3 values|shape|2 values"),
    ],
)
def test_an_answer_that_is_none(model, body, message):
    with pytest.raises(DataError, match=message):
        ask(f"{model(f'def f(x): {body}')}:f")


@pytest.mark.slow
def test_an_error_in_another_process_is_the_same(model):
    path = model("def f(x):\n    if len(x) != 4: raise ValueError('no')\n    return x[:, 0]")
    said = []
    for jobs in (1, 2):
        with pytest.raises(DataError) as caught:
            ask(f"{path}:f", jobs=jobs)
        said.append(str(caught.value))
    assert said == [f"{path}:3: ValueError: no"] * 2


@pytest.mark.slow
def test_a_function_that_ends_its_process(model):
    path = model("import os\ndef f(x):\n    if len(x) != 4: os._exit(3)\n    return x[:, 0]")
    with pytest.raises(DataError, match="died with its process"):
        ask(f"{path}:f", jobs=2)


def test_a_function_that_hangs(model):
    path = model(
        "import time\ndef f(x):\n    try:\n        time.sleep(50)\n    except Exception: pass"
    )
    began = time.monotonic()
    with pytest.raises(TryLaterError, match=r"f: no answer within 0\.1 s"):
        ask(f"{path}:f", timeout_s=0.1)
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        ("no-such.py:f", InputError, "no-such.py: no such file"),
        ("model", UsageError, "FILE.py:NAME"),
        ("{path}", UsageError, "FILE.py:NAME"),
        (":f", UsageError, "FILE.py:NAME"),
        ("{path}:", UsageError, "FILE.py:NAME"),
        ("{path}:f.g", UsageError, "FILE.py:NAME"),
        ("{path}:g", UsageError, r"no function 'g' \(it has f\)"),
        ("{path}:number", UsageError, "number is no function"),
        ("{folder}:f", InputError, "is a directory"),
        ("a\0.py:f", InputError, "null|NUL"),
    ],
)
def test_a_name_that_leads_nowhere(model, tmp_path, spec, error, message):
    path = model("number = 3\ndef f(x): return x[:, 0]")
    with pytest.raises(error, match=message):
        PythonTarget(spec.format(path=path, folder=tmp_path))


def test_a_file_that_is_no_python(tmp_path):
    path = tmp_path / "noise.py"
    path.write_bytes(b"\x00\xff\xfe")
    with pytest.raises(DataError, match=r"noise\.py"):
        PythonTarget(f"{path}:f")


# The checks of all targets


def checked(values, **options):
    return Checked(lambda _: np.asarray(values), **options)(np.zeros((len(values), 2)))


def test_log_density_is_turned_round():
    assert checked([1.0, -np.inf, 3.0], log_density=True).tolist() == [-1, np.inf, -3]


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        ([np.nan] * 3, {}, "NaN for all 3 points"),
        ([1, -np.inf, 2.0], {}, r"-inf for f at the point \(0, 0\)"),
        ([1, np.inf, 2.0], {"log_density": True}, "inf for a log density"),
        ([True, False], {}, "zoprox uniform"),
    ],
)
def test_values_that_are_no_potential(values, options, message):
    with pytest.raises(DataError, match=message):
        checked(values, **options)


def test_a_wrong_number_of_values():
    with pytest.raises(DataError, match="2 values for 3 points"):
        Checked(lambda _: np.zeros(2))(np.zeros((3, 2)))


def test_some_nan_is_not_allowed_and_said_once(caplog):
    answers = iter([[1.0, np.nan, np.inf], [np.nan] * 3, [np.nan, 2.0, 3.0]])
    target = Checked(lambda _: np.array(next(answers)))
    points = np.zeros((3, 2))
    assert target(points).tolist() == [1, np.inf, np.inf]
    assert target(points).tolist() == [np.inf] * 3
    assert target(points).tolist() == [np.inf, 2, 3]
    assert len(caplog.records) == 1
    assert "NaN for 1 of 3 points" in caplog.text


def test_all_ways_give_the_same_values(model):
    path = model("def f(x): return (x[:, 0]*x[:, 0] + x[:, 1]*x[:, 1] + x[:, 2]*x[:, 2]) / 2")
    text = "(x1*x1 + x2*x2 + x3*x3) / 2"
    answers = []
    for target in (Target(target=f"{path}:f"), Target(expression=text), Target(command=AWK)):
        with open_target(target, 3) as potential:
            answers.append(potential(POINTS))
    np.testing.assert_array_equal(answers[0], answers[1])
    np.testing.assert_array_equal(answers[0], answers[2])


def test_exactly_one_way():
    with pytest.raises(UsageError, match="no target given"), open_target(Target(), 2):
        pass
    two = Target(expression="x1", command="cat")
    with pytest.raises(UsageError, match="more than one"), open_target(two, 2):
        pass


@pytest.mark.parametrize(
    ("named", "way"),
    [
        ("model.py:inside", "target"),
        ("some folder/model.py:inside", "target"),
        ("bench:tori", "target"),
        ("x1 < x2", "expression"),
        ("./check --all", "command"),
        ("python model.py", "command"),
    ],
)
def test_what_a_name_means(named, way):
    assert getattr(guessed(named, 2, Target()), way) == named


def test_a_missing_command_is_told_when_asked():
    with (
        open_target(Target(command="no-such-program"), 2) as potential,
        pytest.raises(MissingError),
    ):
        potential(np.zeros((1, 2)))


@pytest.mark.slow
def test_a_function_of_torch(model):
    path = model("#\nimport torch\ndef f(x):\n    return torch.exp(x).sum(1)")
    values = ask(f"{path}:f", device="cpu")
    np.testing.assert_allclose(values, np.exp(POINTS).sum(1), rtol=1e-14)
    with pytest.raises(DataError, match="needs --device"):
        ask(f"{path}:f")
