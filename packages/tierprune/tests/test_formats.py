"""Every format: what is written reads back the same; detection, compression, conversion."""

import gzip
import lzma
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from papercuts.errors import DataError, InputError, OutputError
from tierprune import formats
from tierprune.graphfile import Edge, GraphFile
from tierprune.pag import Mark

WRITABLE = ("dot", "graphml", "dagitty", "edges")
MARKS = (Mark.TAIL, Mark.ARROW, Mark.CIRCLE)

# Whatever a column may be called, and what means something else to one of the formats.
AWKWARD = st.sampled_from(
    [
        *(
            "->",
            "a -> b",
            "a o-> b",
            "o-o",
            "---",
            "a-b",
            "a->b",
            "a<-b",
            "--",
            "@",
            "A@->B",
            "A:p",
        ),
        *('"', '\\"', "a\\", "\\\\", "'", "a,b", ";", "a;", "{", "[x]", "a=b", "a+b", "%", "null"),
        *(
            "#",
            "x # y",
            "//",
            "/*",
            "<!--",
            "]]>",
            "&amp;",
            "<b>",
            " lead",
            "trail ",
            "-1",
            "1a",
            ".5",
        ),
        *("graph", "node", "Edge", "strict", "dag", "true", "größe", "年齢", "💊", "a\nb", "a\tb"),
        *("\u2028", "\u00a0"),
    ]
)
NAMES = AWKWARD | st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff"), min_size=1
)


@st.composite
def graphs(draw: st.DrawFn) -> GraphFile:
    names = draw(st.lists(NAMES, min_size=1, max_size=5, unique=True))
    pairs = st.tuples(st.sampled_from(names), st.sampled_from(names))
    marks = st.sampled_from(MARKS)
    edges = draw(
        st.lists(st.builds(lambda p, a, b: Edge(*p, a, b), pairs, marks, marks), max_size=6)
    )
    return GraphFile(names, edges, "edges")


def same(edge: Edge) -> frozenset[tuple[str, Mark]]:
    return frozenset([(edge.a, edge.at_a), (edge.b, edge.at_b)])


def check_survival(format_: formats.FormatName, graph: GraphFile) -> None:
    text = formats.dumps(formats.converted(graph, format_))
    again = formats.parse(text, format_)
    assert sorted(again.names) == sorted(graph.names)
    assert list(map(same, again.edges)) == list(map(same, graph.edges))
    if format_ != "edges":  # there a name appears where its edge does
        assert again.names == graph.names
    assert formats.dumps(again) == text
    if graph.names[0] not in ("dag", "graph", "strict"):
        assert formats.detect(text) == format_


@settings(max_examples=30, deadline=None)
@given(graph=graphs(), format_=st.sampled_from(WRITABLE))
def test_any_names_and_marks_survive(format_: formats.FormatName, graph: GraphFile) -> None:
    check_survival(format_, graph)


@pytest.mark.slow
@pytest.mark.parametrize("format_", WRITABLE)
@settings(max_examples=100, deadline=None)
@given(graph=graphs())
def test_any_names_and_marks_survive_in_each_format(
    format_: formats.FormatName, graph: GraphFile
) -> None:
    check_survival(format_, graph)


@settings(max_examples=60, deadline=None)
@given(
    text=st.text() | st.text('<->o@{}[]="\\;,#/*ab \n'), format_=st.sampled_from([*WRITABLE, "bif"])
)
def test_any_text_is_a_graph_or_bad_data(format_: formats.FormatName, text: str) -> None:
    beginning = {"dot": "digraph {", "dagitty": "dag {", "bif": "variable A {} "}.get(format_, "")
    for whole in (text, f"{beginning}{text}", f"{beginning}{text}}}"):
        try:
            graph = formats.parse(whole, format_, "FILE")
        except DataError as error:
            message = str(error)
        else:
            message = "FILE: is a graph"
            assert all(graph.names)
            assert {name for edge in graph.edges for name in edge[:2]} <= set(graph.names)
        assert re.match("FILE:.", message)
        assert "\n" not in message


TEXTS: dict[formats.FormatName, str] = {
    "dot": "digraph { A -> B; A -> C [dir=both] }",
    "graphml": (
        '<graphml><key id="m" for="edge" attr.name="marks"/><graph edgedefault="directed">'
        '<node id="A"/><node id="B"/><node id="C"/><edge source="A" target="B"/>'
        '<edge source="A" target="C"><data key="m">&lt;-&gt;</data></edge></graph></graphml>'
    ),
    "dagitty": "dag { A -> B\nA <-> C }",
    "edges": "A -> B\nA <-> C\n",
}


@pytest.mark.parametrize("format_", WRITABLE)
@pytest.mark.parametrize("lead", ["", "\n\n", "\ufeff"])
def test_found_by_first_words(format_: formats.FormatName, lead: str, tmp_path: Path) -> None:
    path = tmp_path / "graph.txt"
    path.write_text(lead + TEXTS[format_])
    graph = formats.read(str(path))
    assert graph.format == format_
    assert [(e.a, e.b, e.at_a, e.at_b) for e in graph.edges] == [
        ("A", "B", Mark.TAIL, Mark.ARROW),
        ("A", "C", Mark.ARROW, Mark.ARROW),
    ]


@pytest.mark.parametrize(
    ("text", "format_"),
    [
        ("// a comment\n/* and\nmore */ strict  digraph G {", "dot"),
        ('Graph "a b" {', "dot"),
        ("graph -> B", "edges"),
        ("# causes\ndag -> pag", "edges"),
        ("pag{A @-> B}", "dagitty"),
        ('dag "my model" {', "dagitty"),
        ("network unknown {\n}", "bif"),
        ("variable -> probability", "edges"),
        ("", "edges"),
    ],
)
def test_first_words(text: str, format_: str) -> None:
    assert formats.detect(text) == format_


@pytest.mark.parametrize(
    ("name", "format_"),
    [
        ("g.dot", "dot"),
        ("g.GV", "dot"),
        ("g.graphml.gz", "graphml"),
        ("g.xml", "graphml"),
        ("g.dagitty.zst", "dagitty"),
        ("g.edges.xz", "edges"),
        ("alarm.bif.gz", "bif"),
        ("g.dot.txt", "dagitty"),
    ],
)
def test_suffix_goes_first(name: str, format_: str) -> None:
    assert formats.detect("dag { A -> B }", name) == format_


@pytest.mark.parametrize(("suffix", "unpack"), [(".gz", gzip.decompress), (".xz", lzma.decompress)])
def test_compressed_by_suffix(tmp_path: Path, suffix: str, unpack: object) -> None:
    path = tmp_path / f"g.dot{suffix}"
    graph = formats.parse(TEXTS["dot"], "dot")
    formats.write(graph, str(path))
    assert unpack(path.read_bytes()).decode() == formats.dumps(graph)  # type: ignore[operator]
    assert formats.read(str(path)).edges[0][:2] == ("A", "B")


def test_written_whole_and_not_over_another(tmp_path: Path) -> None:
    graph = formats.parse(TEXTS["edges"], "edges")
    path = str(tmp_path / "g.edges")
    formats.write(graph, path)
    with pytest.raises(OutputError):
        formats.write(graph, path)
    formats.write(graph, path, force=True)
    assert Path(path).read_text() == TEXTS["edges"]


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        formats.read(str(tmp_path / "none.dot"))
    path = tmp_path / "latin.dot"
    path.write_bytes("digraph {\n A -> größe }".encode("latin-1"))
    with pytest.raises(DataError, match=r"latin\.dot:2: not UTF-8"):
        formats.read(str(path))


def test_conversion_leaves_what_only_one_format_can_say() -> None:
    graph = formats.parse(
        'dag { bb="0,0,1,1" A [exposure,pos="1,2"] A @-> "b c" [beta=1] }', "dagitty"
    )
    assert formats.dumps(formats.converted(graph, "dot")) == (
        'digraph {\n  A;\n  "b c";\n  A -> "b c" [dir=both, arrowtail=odot, arrowhead=normal];\n}\n'
    )
    assert formats.converted(graph, "dagitty") is graph


def test_latent_variables_are_projected_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The front-door graph of dagitty users: X <- U -> Y with U latent is X <-> Y."""
    path = tmp_path / "front.dagitty"
    path.write_text('dag { U [latent,pos="0,0"] X [exposure]\nU -> {X Y}\nX -> M -> Y }')
    graph = formats.read(str(path))
    assert formats.dumps(graph) == "dag {\nX [exposure]\nY\nM\nX -> M\nM -> Y\nX <-> Y\n}\n"
    assert formats.parse(path.read_text(), "dagitty").latent == ["U"]


@pytest.mark.parametrize(
    ("format_", "text"),
    [
        ("dot", "digraph { U [latent=true]; U -> A; U -> B; }"),
        ("dot", 'digraph { U [observed="no"]; U -> A; U -> B; }'),
        ("dagitty", "dag { U [u] U -> A U -> B }"),
        (
            "graphml",
            '<graphml><key id="k" for="node" attr.name="latent"/><graph>'
            '<node id="U"><data key="k">true</data></node><node id="A"/><node id="B"/>'
            '<edge source="U" target="A"/><edge source="U" target="B"/></graph></graphml>',
        ),
    ],
)
def test_latent_variables_of_each_format(format_: formats.FormatName, text: str) -> None:
    seen = formats.parse(text, format_).observed()
    assert seen.names == ["A", "B"]
    assert [edge[:4] for edge in seen.edges] == [("A", "B", Mark.ARROW, Mark.ARROW)]


def test_circle_beside_a_latent_variable_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "g.dagitty"
    path.write_text("pag { U [latent]\nU @-> A }")
    with pytest.raises(DataError, match=r"g\.dagitty:2: the edge between U and A is neither"):
        formats.read(str(path))
