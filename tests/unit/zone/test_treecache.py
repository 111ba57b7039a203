"""The label tree: what is there, what is not, what a wildcard may cost."""

import json

import pytest

from kubedns.backend import ServiceRecord
from kubedns.dns.names import Labels
from kubedns.zone.dump import dump
from kubedns.zone.treecache import MOST_NODES, Entry, Node, TooManyNamesError, TreeCache

SVC: Labels = (b"local", b"svc")
OWNER = SVC[::-1]
ONE, TWO = (b"\x0a\0\0\1", 0), (b"\x0a\0\0\2", 0)


def at(name: Labels, entry: Entry) -> ServiceRecord:
    return ServiceRecord(*entry, (*name, *OWNER))


def leaf(*entries: Entry) -> Node:
    return Node({b"e%d" % number: (entry,) for number, entry in enumerate(entries)})


@pytest.fixture
def tree():
    tree = TreeCache(SVC)
    tree.set_subtree((*SVC, b"ns", b"web"), leaf(ONE))
    tree.set_entry((*SVC, b"ns", b"ext"), (TWO,))
    return tree


def test_records_of_a_node_are_its_entries_each_at_its_own_name(tree):
    assert tree.get((*SVC, b"ns", b"web")) == [at((b"e0", b"web", b"ns"), ONE)]
    assert tree.get((*SVC, b"ns", b"web", b"e0")) == [at((b"e0", b"web", b"ns"), ONE)]
    assert tree.get((*SVC, b"ns", b"ext")) == [at((b"ext", b"ns"), TWO)]


def test_inner_node_exists_without_records_though_entries_are_kept_in_it(tree):
    assert tree.get((*SVC, b"ns")) == []
    assert tree.get(SVC) == []
    assert tree.match((b"local", b"*", b"ns")) is None


def test_path_that_leads_nowhere_is_none(tree):
    for path in ((*SVC, b"no"), (*SVC, b"ns", b"web", b"no"), (*SVC, b"ns", b"ext", b"x"), (b"no",)):
        assert tree.get(path) is None


def test_removal_takes_the_inner_nodes_that_are_left_empty_and_keeps_the_fixed_path(tree):
    tree.set_entry((*SVC, b"ns", b"ext"), ())
    assert tree.get((*SVC, b"ns")) == []
    tree.set_subtree((*SVC, b"ns", b"web"), None)
    assert "".join(dump(tree.root, 30)) == (
        '{"ChildNodes":{"local":{"ChildNodes":{"svc":{"ChildNodes":{},"Entries":{}}},"Entries":{}}},"Entries":{}}'
    )
    tree.set_subtree((*SVC, b"never", b"was"), None)
    assert tree.get((*SVC, b"ns")) is None


def test_wildcard_is_every_child_without_an_underscore(tree):
    node = Node({b"e": (ONE,)}, {b"_tcp": leaf(TWO), b"sub": leaf(TWO)})
    tree.set_subtree((*SVC, b"other", b"web"), node)
    assert len(tree.match((*SVC, b"*", b"web")) or ()) == 2
    below = tree.match((*SVC, b"other", b"web", b"*", b"e0"))
    assert below == [at((b"e0", b"sub", b"web", b"other"), TWO)]


def test_last_wildcard_is_the_entries_of_its_node_also_below_another(tree):
    assert tree.match((*SVC, b"ns", b"web", b"*")) == [at((b"e0", b"web", b"ns"), ONE)]
    assert tree.match((*SVC, b"ns", b"*")) == [at((b"ext", b"ns"), TWO)]
    assert tree.match((*SVC, b"*", b"*")) == [at((b"ext", b"ns"), TWO)]
    assert tree.match((b"local", b"*", b"ns", b"*")) == [at((b"ext", b"ns"), TWO)]
    assert tree.match((*SVC, b"*", b"*", b"*")) == [at((b"e0", b"web", b"ns"), ONE)]


def test_wildcard_among_more_names_than_one_question_may_look_at_is_refused():
    tree, made = TreeCache(SVC), []

    def maker():
        made.append(1)
        yield {b"e": (ONE,)}, {}

    for number in range(3 * MOST_NODES):
        tree.set_subtree((*SVC, b"ns-%d" % (number % 9), b"web-%d" % number), Node(maker=maker))
    with pytest.raises(TooManyNamesError):
        tree.match((*SVC, b"*", b"*", b"nothing"))
    assert len(made) <= MOST_NODES
    assert tree.match((*SVC, b"*", b"web-2999")) is not None
    assert tree.match((*SVC, b"*", b"*")) is None


def test_maker_is_called_once_for_answers_and_keeps_nothing_for_a_look_at_everything():
    calls = []

    def maker():
        calls.append(1)
        yield {b"e": (ONE,)}, {b"_tcp": leaf(TWO)}

    node = Node(maker=maker)
    for _ in range(2):
        json.loads("".join(dump(node, 30)))
    assert len(calls) == 2
    assert node.has((b"e",))
    assert node.has((b"_tcp", b"e0"))
    assert node.has(())
    assert not node.has((b"x",))
    assert not node.has((b"e", b"x"))
    assert len(calls) == 3


def test_json_leaves_zero_values_out_and_lists_several_records_of_a_name():
    node = Node({b"e": (ONE, TWO), b"srv": (((b"web", b"local"), 80),)})
    shown = json.loads("".join(dump(node, 30)))["Entries"]
    assert [record["host"] for record in shown["e"]] == ["10.0.0.1", "10.0.0.2"]
    assert "port" not in shown["e"][0]
    assert shown["srv"] == {"host": "web.local.", "port": 80, "priority": 10, "weight": 10, "ttl": 30}
    assert "ttl" not in json.loads("".join(dump(leaf(ONE), 0)))["Entries"]["e0"]


def test_json_of_a_large_node_comes_in_pieces_of_one_record():
    shared = tuple((bytes((10, 2, number // 250, number % 250)), 0) for number in range(3000))
    names = [b"%d" % number for number in range(5000)]
    node = Node({**dict.fromkeys(names, (ONE,)), b"shared": shared}, dict.fromkeys(names[:2500], leaf(TWO)))
    pieces = list(dump(node, 30))
    assert max(piece.count("host") for piece in pieces) == 1
    assert max(map(len, pieces)) < 200
    shown = json.loads("".join(pieces))
    assert list(shown["Entries"]) == sorted([*map(bytes.decode, names), "shared"])
    assert list(shown["ChildNodes"]) == sorted(map(bytes.decode, names[:2500]))
    assert len(shown["Entries"]["shared"]) == 3000


def test_names_of_a_node_are_made_a_step_at_a_time_while_it_is_shown():
    steps = []

    def maker():
        for number in range(10):
            steps.append(number)
            yield {b"%d" % each: (ONE,) for each in range(number)}, {}

    seen = [(len(steps), piece) for piece in dump(Node(maker=maker), 0)]
    assert [count for count, _ in seen[:10]] == list(range(1, 11))
    assert "".join(piece for _, piece in seen).count("10.0.0.1") == 9


def test_what_goes_and_comes_while_the_tree_is_shown_leaves_it_well_formed():
    tree = TreeCache(SVC)
    for number in range(10):
        tree.set_subtree((*SVC, b"ns", b"web-%d" % number), leaf(ONE))
        tree.set_entry((*SVC, b"ns", b"ext-%d" % number), (TWO,))
    pieces = []
    for piece in dump(tree.root, 30):
        pieces.append(piece)
        if "web-3" in piece:
            for number in range(10):
                tree.set_subtree((*SVC, b"ns", b"web-%d" % number), None)
                tree.set_entry((*SVC, b"ns", b"ext-%d" % number), ())
            tree.set_subtree((*SVC, b"other", b"web"), leaf(ONE))
    shown = json.loads("".join(pieces))["ChildNodes"]["local"]["ChildNodes"]["svc"]["ChildNodes"]
    assert list(shown["ns"]["ChildNodes"]) == ["web-0", "web-1", "web-2", "web-3"]
    assert shown["ns"]["Entries"] == {}


def test_addresses_of_a_node_are_distinct_and_of_one_length():
    six = bytes(15) + b"\1"
    node = Node({b"a": (ONE, TWO, (six, 0)), b"b": (ONE,)}, {b"_tcp": Node()})
    assert node.addresses(b"", 4) == (ONE[0], TWO[0])
    assert node.addresses(b"b", 4) == (ONE[0],)
    assert node.addresses(b"a", 16) == (six,)
    assert node.addresses(b"b", 16) == ()


def test_a_node_has_no_addresses_to_tell_where_other_records_are():
    ports = Node({b"a": (((b"web", b"local"), 80),)})
    assert ports.addresses(b"", 4) is None
    assert Node().addresses(b"", 4) is None
    assert Node({b"a": (ONE,)}, {b"_tcp": ports}).addresses(b"_tcp", 4) is None
    assert Node({b"a": (ONE,)}).addresses(b"b", 4) is None


def test_targets_are_those_of_the_ports_below_a_node():
    first, second = ((b"web", b"local"), 80), ((b"db", b"local"), 81)
    node = Node({b"a": (ONE,)}, {b"_tcp": Node(children={b"_http": Node({b"a": (first, second)})})})
    assert node.targets((b"_tcp", b"_http")) == [first, second]
    assert node.targets((b"_tcp", b"_no")) is None
    assert node.targets((b"_tcp",)) is None
    assert node.targets(()) is None
