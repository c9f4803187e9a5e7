"""What each format says, construct by construct, and the line of every mistake."""

import importlib.util
import io
from pathlib import Path

import networkx as nx
import pytest

from papercuts.errors import DataError
from tierprune import formats
from tierprune.pag import arrow


def edges(text: str, format_: formats.FormatName) -> list[str]:
    graph = formats.parse(text, format_)
    return [f"{e.a} {arrow(e.at_a, e.at_b)} {e.b}" for e in graph.edges]


@pytest.mark.parametrize(
    ("attributes", "sign"),
    [
        ("", "-->"),
        ("[dir=forward]", "-->"),
        ("[dir=back]", "<--"),
        ('[dir="both"]', "<->"),
        ("[dir=none]", "---"),
        ("[dir=both, arrowtail=odot]", "o->"),
        ("[dir=both arrowtail=odot; arrowhead=odot]", "o-o"),
        ("[dir=both][arrowtail=none]", "-->"),
        ("[dir=both, arrowtail=none, arrowhead=odot]", "--o"),
        ("[arrowhead=odot]", "--o"),
        ("[arrowhead=none]", "---"),
        ("[dir=back, arrowtail=vee]", "<--"),
        ("[color=red, label=<a <b>b</b>>]", "-->"),
    ],
)
def test_dot_marks_are_what_graphviz_draws(attributes: str, sign: str) -> None:
    assert edges(f"digraph {{ A -> B {attributes} }}", "dot") == [f"A {sign} B"]


@pytest.mark.parametrize(
    ("attributes", "sign"),
    [
        ("", "---"),
        ("[dir=both]", "<->"),
        ("[dir=both, arrowtail=none]", "-->"),
        ("[dir=forward]", "-->"),
    ],
)
def test_dot_undirected(attributes: str, sign: str) -> None:
    assert edges(f"graph {{ A -- B {attributes} }}", "dot") == [f"A {sign} B"]


DOT = r"""
/* a comment */ strict DiGraph "the graph" {  // and another
# a line of the preprocessor
  rankdir = LR; graph [fontsize=10]
  node [shape=box] edge [color=grey]
  A:port:n -> B -> { C; D } [penwidth=2]
  subgraph cluster_x { label="a\nb"; node [shape=oval]; edge [dir=both]; E -> F }
  subgraph { A B } -> subgraph s { F }
  "say \"hi\"" [label=<<b>bold</b>>, tooltip="one " + "two"];
  -3.5 -> ünï
}
"""


def test_dot_constructs() -> None:
    graph = formats.parse(DOT, "dot")
    assert graph.names == ["A", "B", "C", "D", "E", "F", 'say "hi"', "-3.5", "ünï"]
    assert edges(DOT, "dot") == [
        "A --> B",
        "B --> C",
        "B --> D",
        "E <-> F",
        "A --> F",
        "B --> F",
        "-3.5 --> ünï",
    ]
    assert graph.attributes["E"] == {"shape": "oval"}
    assert graph.attributes['say "hi"'] == {
        "shape": "box",
        "label": "<<b>bold</b>>",
        "tooltip": '"one two"',
    }
    assert [edge.line for edge in graph.edges] == [6, 6, 6, 7, 8, 8, 10]
    text = formats.dumps(graph)
    assert text.startswith(
        'digraph "the graph" {\n  rankdir=LR;\n  fontsize=10;\n  A [shape=box];\n'
    )
    assert '  A -> B [color=grey, penwidth=2, tailport="port:n"];\n' in text
    assert "  E -> F [dir=both, color=grey];\n" in text
    assert formats.dumps(formats.parse(text, "dot")) == text


DAGITTY = """dag "smoking" {
bb="-2,-2,2,2"
"blood pressure" [outcome,pos="0.1,-0.5"]
smoking [exposure,pos="1,2"]
age [adjusted]
age -> smoking -> "blood pressure" <- age
{age sex} -> diet <-> smoking [pos="0.3,0.3"]
diet @-> x @-@ y @-- z -- w ; w <-@ v --@ u
}
"""


def test_dagitty_constructs() -> None:
    graph = formats.parse(DAGITTY, "dagitty")
    assert edges(DAGITTY, "dagitty") == [
        "age --> smoking",
        "smoking --> blood pressure",
        "blood pressure <-- age",
        "age --> diet",
        "sex --> diet",
        "diet <-> smoking",
        "diet o-> x",
        "x o-o y",
        "y o-- z",
        "z --- w",
        "w <-o v",
        "v --o u",
    ]
    text = formats.dumps(graph)
    for kept in (
        'dag "smoking" {\n',
        'bb="-2,-2,2,2"\n',
        '"blood pressure" [outcome, pos="0.1,-0.5"]\n',
        'smoking [exposure, pos="1,2"]\n',
        "age [adjusted]\n",
        'diet <-> smoking [pos="0.3,0.3"]\n',
        "y @-- z\n",
        "v --@ u\n",
    ):
        assert kept in text
    assert formats.dumps(formats.parse(text, "dagitty")) == text


@pytest.mark.parametrize("kind", ["dag", "pdag", "mag", "pag"])
def test_dagitty_kind_comes_back(kind: str) -> None:
    assert formats.dumps(formats.parse(f"{kind}{{A}}", "dagitty")) == f"{kind} {{\nA\n}}\n"


EDGES = """# marks of every kind
age -> drug     # a comment
low-dose->x2
blood pressure <-> "a, b" # names with spaces, and quoted
A o-> B
A o-o B;
A --- B
B <- A
B <-- A
A --> B
B <-o A
A --o B
alone
"x \\"y\\" \\u00e9"<->C#4
"""


def test_edge_list_constructs() -> None:
    assert edges(EDGES, "edges") == [
        "age --> drug",
        "low-dose --> x2",
        "blood pressure <-> a, b",
        "A o-> B",
        "A o-o B",
        "A --- B",
        "B <-- A",
        "B <-- A",
        "A --> B",
        "B <-o A",
        "A --o B",
        'x "y" é <-> C#4',
    ]
    graph = formats.parse(EDGES, "edges")
    assert "alone" in graph.names
    assert [edge.line for edge in graph.edges] == [*range(2, 13), 14]
    assert formats.dumps(graph).splitlines()[:3] == ["alone", "age -> drug", "low-dose -> x2"]


def test_networkx_reads_the_graphml_that_is_written_and_the_other_way() -> None:
    graph = nx.DiGraph()
    graph.add_node("a & b", label="<one>", weight=2)
    graph.add_edge("a & b", "c\n", colour="rød")
    graph.add_edge("c\n", "d")
    buffer = io.BytesIO()
    nx.write_graphml(graph, buffer)
    read = formats.parse(buffer.getvalue().decode(), "graphml")
    assert read.names == ["a & b", "c\n", "d"]
    again = nx.read_graphml(io.BytesIO(formats.dumps(read).encode()))
    assert list(again.nodes(data=True)) == list(graph.nodes(data=True))
    assert list(again.edges(data=True)) == [
        ("a & b", "c\n", {"colour": "rød", "marks": "-->"}),
        ("c\n", "d", {"marks": "-->"}),
    ]


GRAPHML = """<?xml version="1.0" encoding="ISO-8859-1"?>
<!DOCTYPE graphml SYSTEM "http://example.org/never-fetched.dtd">
<g:graphml xmlns:g="http://graphml.graphdrawing.org/xmlns">
 <key id="v_name" for="node" attr.name="name" attr.type="string"/>
 <key id="m" for="edge" attr.name="marks" attr.type="string"><default>&lt;-&gt;</default></key>
 <graph id="G" edgedefault="undirected">
  <node id="n0"><data key="v_name">größe</data><port name="p"/></node>
  <node id="n1"><data key="v_name">age</data></node>
  <edge source="n0" target="n1"/>
  <edge source="n0" target="n1" directed="true"><data key="m">o-&gt;</data></edge>
 </graph>
</g:graphml>
"""


def test_graphml_constructs() -> None:
    assert edges(GRAPHML, "graphml") == ["größe <-> age", "größe o-> age"]
    text = formats.dumps(formats.parse(GRAPHML, "graphml"))
    assert '<node id="n0">\n      <data key="v_name">größe</data>' in text
    assert edges(text, "graphml") == ["größe <-> age", "größe o-> age"]
    plain = '<graphml><graph edgedefault="{}"><node id="a"/><node id="b"/>{}</graph></graphml>'
    edge = '<edge source="a" target="b"/>'
    assert edges(plain.format("undirected", edge), "graphml") == ["a --- b"]
    assert edges(plain.format("directed", edge), "graphml") == ["a --> b"]


def test_graphml_declares_no_entities() -> None:
    """Ten lines that would expand to gigabytes are refused at the first declaration."""
    bomb = ['<!DOCTYPE x [<!ENTITY a "ha">']
    bomb += [f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 10)]
    text = "\n".join([*bomb, "]>", '<graphml><graph><node id="&a9;"/></graph></graphml>'])
    with pytest.raises(DataError, match="g:1: an entity of its own"):
        formats.parse(text, "graphml", "g")
    outside = '<!DOCTYPE x SYSTEM "file:///etc/passwd">\n<graphml><graph>&x;</graph></graphml>'
    with pytest.raises(DataError, match="g:2: an entity of its own"):
        formats.parse(outside, "graphml", "g")


def test_graphml_cannot_hold_control_characters() -> None:
    graph = formats.parse('"a\\u0001" -> b', "edges")
    with pytest.raises(DataError, match="XML"):
        formats.dumps(formats.converted(graph, "graphml"))


@pytest.mark.parametrize(
    ("network", "nodes", "arcs"),
    [
        ("asia", 8, 8),
        ("cancer", 5, 4),
        ("sachs", 11, 17),
        ("child", 20, 25),
        ("insurance", 27, 52),
        ("alarm", 37, 46),
        ("hailfinder", 56, 66),
        ("hepar2", 70, 123),
        ("win95pts", 76, 112),
    ],
)
def test_bif_networks_have_their_published_size(network: str, nodes: int, arcs: int) -> None:
    """Sizes as listed by the bnlearn repository (bnlearn.com/bnrepository)."""
    package = importlib.util.find_spec("pgmpy")
    assert package is not None
    assert package.origin is not None
    path = Path(package.origin).parent / "utils" / "example_models" / f"{network}.bif.gz"
    graph = formats.read(str(path))
    assert (len(graph.names), len(graph.edges)) == (nodes, arcs)
    assert graph.admg().cycle() == []
    again = formats.parse(formats.dumps(graph), "edges")
    assert {edge[:4] for edge in again.edges} == {edge[:4] for edge in graph.edges}


def test_bif_constructs() -> None:
    text = """// written by hand
    network "a net" { property x = y ; }
    variable "A" { type discrete [ 2 ] { "yes;", no }; property p = {q}; }
    variable B-2 { type discrete[2]{a,b}; }  /* { */
    variable C { type discrete [ 2 ] { a, b }; }
    probability ( A ) { table 0.1, 0.9; }
    probability ( B-2 | A, C ) { (yes, a) 0.1, 0.9; default .5, .5; }
    """
    assert formats.parse(text, "bif").names == ["A", "B-2", "C"]
    assert edges(text, "bif") == ["A --> B-2", "C --> B-2"]


@pytest.mark.parametrize(
    ("format_", "text", "message"),
    [
        ("dot", "digraph {\nA -> }", "g:2: found '}' (expected a name)"),
        ("dot", "digraph {\n A <-> B }", "g:2: found '<->' (expected -> --)"),
        (
            "dot",
            "digraph { A -> B [dir=up] }",
            "g:1: dir=up (expected forward, back, both or none)",
        ),
        (
            "dot",
            "digraph { A -> B [arrowtail=odot] }",
            "g:1: arrowtail=odot is not drawn with dir=forward (expected dir=both)",
        ),
        (
            "dot",
            "digraph { A -> B [arrowhead=box] }",
            "g:1: arrowhead=box (expected normal, odot or none)",
        ),
        ("dot", 'digraph {\n\n"A -> B }', "g:3: a quote that is not closed"),
        ("dot", "digraph { /* A }", "g:1: a comment that is not closed"),
        ("dot", "digraph { A [label=<b }", "g:1: an HTML string that is not closed"),
        ("dot", "dag { A }", "g:1: found 'dag' (expected digraph or graph)"),
        ("dot", "digraph { A\n", "g:2: found the end of the file (expected })"),
        ("dot", "digraph { A } B", "g:1: found 'B' (expected the end of the file after })"),
        ("dot", "digraph { subgraph x A }", "g:1: found 'A' (expected { after subgraph)"),
        ("dot", "digraph { {A} [color=red] }", "expected attributes behind a node or an edge"),
        ("dot", "digraph {" + "{" * 5000, "expected at most 100 groups in one another"),
        ("dot", "digraph { }", "g: there is no variable (expected a graph as dot)"),
        ("dot", 'digraph { "" -> B }', "g: a variable without a name"),
        ("dagitty", "dag {\nA => B }", "g:2: found '=>' (expected "),
        ("dagitty", "dag { A [pos=] }", "g:1: found ']' (expected a value)"),
        ("edges", "A -> B\nA, B", "g:2: 'A, B' holds , without double quotes"),
        ("edges", "A -> B -> C", "g:1: 'A -> B -> C' is not an edge (expected A -> B"),
        ("edges", "-> C", "g:1: '-> C' is not an edge"),
        ("edges", '\n"A -> B', "g:2: a quote that is not closed or stands inside a name"),
        ("edges", '"\\x" -> B', 'g:1: "\\x" is not a JSON string'),
        ("edges", '"\\ud800" -> B', "is half a character"),
        ("graphml", "<svg/>", "g:1: <svg> (expected <graphml>)"),
        ("graphml", "<graphml>\n<graph>", "g:2: no element found (expected GraphML)"),
        ("graphml", "<graphml><graph>\n<node/></graph></graphml>", "g:2: <node> without id"),
        (
            "graphml",
            '<graphml><graph><node id="a"/>\n<edge source="a" target="b"/></graph></graphml>',
            "g:2: b is not a node",
        ),
        (
            "graphml",
            '<graphml><graph><node id="a"/><node id="a"/></graph></graphml>',
            "two nodes with the id a",
        ),
        (
            "graphml",
            "<graphml><graph><hyperedge/></graph></graphml>",
            "a hyperedge (expected edges",
        ),
        ("bif", "variable", "g:1: found the end of the file (expected the name of a variable"),
        (
            "bif",
            "variable A {}\nvariable A {}",
            "g:2: found A (expected the name of a variable, once)",
        ),
        (
            "bif",
            "variable A {}\nprobability ( A | B ) { }",
            "g:2: B is not a variable of the network",
        ),
        (
            "bif",
            "variable A { type",
            "g:1: found variable (expected a block in { } that is closed)",
        ),
        (
            "bif",
            "variables { }",
            "g:1: found variables (expected network, variable or probability)",
        ),
    ],
)
def test_mistakes_are_named_with_their_line(
    format_: formats.FormatName, text: str, message: str
) -> None:
    with pytest.raises(DataError) as caught:
        formats.parse(text, format_, "g")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("A -> B\nB o-> C", "g:2: the edge between B and C is neither directed nor bidirected"),
        ("A -> A", "g:1: an edge from A to itself"),
        ("A -> B\nC <- B\nC -> A\nA <-> B", "g:3: directed cycle: B -> C -> A -> B"),
    ],
)
def test_graphs_that_are_no_admg(text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        formats.parse(text, "edges", "g").admg()


def test_pairs_with_two_edges_are_no_pag() -> None:
    graph = formats.parse("A -> B\nC o-> B\nB <-o C\nB <- A", "edges", "g").pag()
    assert len(list(graph.edges())) == 2
    with pytest.raises(DataError, match="g:3: two edges between B and A"):
        formats.parse("A -> B\nC\nB <-> A", "edges", "g").pag()
