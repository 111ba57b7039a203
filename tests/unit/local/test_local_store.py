"""The store and its history: versions, snapshots, what a watcher sees."""

import orjson
import pytest

from kubedns.local.api.history import Entry, ExpiredError
from kubedns.local.api.kinds import CONFIG_MAPS, SERVICES, Resource
from kubedns.local.api.selectors import EVERYTHING, Selector, parse_labels
from kubedns.local.api.store import Store


def write(
    store: Store, name: str, namespace: str = "ns", resource: Resource = CONFIG_MAPS, **labels: str
) -> Entry:
    return store.write(
        resource,
        {"metadata": {"name": name, "namespace": namespace, "resourceVersion": "0", "labels": labels}},
    )


def remove(store: Store, name: str) -> None:
    entry = store.get(CONFIG_MAPS, "ns", name)
    assert entry is not None
    store.remove(CONFIG_MAPS, entry)


def names(entries: list[Entry]) -> list[str]:
    return [f"{entry.namespace}/{entry.name}" for entry in entries]


def events(store: Store, selector: Selector = EVERYTHING, cursor: int = 0) -> list[tuple[str, str, str]]:
    lines = [change.line(selector) for change in store.history.read(cursor, 1000)]
    return [
        (event["type"], event["object"]["metadata"]["name"], event["object"]["metadata"]["resourceVersion"])
        for event in map(orjson.loads, filter(None, lines))
    ]


def test_one_counter_numbers_writes_of_all_kinds():
    store = Store(first_version=10)
    assert [write(store, "a").version, write(store, "a", resource=SERVICES).version] == [11, 12]
    remove(store, "a")
    assert store.version == 13


def test_objects_come_in_the_order_of_their_keys():
    store = Store()
    for namespace, name in [("b", "x"), ("a-b", "x"), ("a", "z"), ("a", "y")]:
        write(store, name, namespace)
    assert names(store.entries(CONFIG_MAPS)) == ["a-b/x", "a/y", "a/z", "b/x"]
    assert names(store.entries(CONFIG_MAPS, "a")) == ["a/y", "a/z"]


def test_a_snapshot_shows_the_state_of_its_version():
    store = Store(first_version=1)
    write(store, "kept")
    changed = write(store, "changed", state="old")
    write(store, "deleted")
    version = store.version
    write(store, "changed", state="new")
    write(store, "created")
    remove(store, "deleted")
    then = store.entries_at(CONFIG_MAPS, version, "", "")
    assert names(then) == ["ns/changed", "ns/deleted", "ns/kept"]
    assert then[0] == changed
    assert names(store.entries_at(CONFIG_MAPS, version, "", "/ns/d")) == ["ns/deleted", "ns/kept"]


def test_watchers_see_objects_enter_and_leave_their_selector():
    store = Store(first_version=1)
    write(store, "a", colour="red")
    write(store, "a", colour="blue")
    write(store, "a", colour="blue", size="1")
    write(store, "a", colour="red")
    remove(store, "a")
    assert events(store, Selector(parse_labels("colour=blue"))) == [
        ("ADDED", "a", "3"),
        ("MODIFIED", "a", "4"),
        ("DELETED", "a", "5"),
    ]
    assert [kind for kind, *_ in events(store)] == ["ADDED", "MODIFIED", "MODIFIED", "MODIFIED", "DELETED"]


def test_a_deleted_object_carries_its_last_state_and_the_version_of_its_going():
    store = Store(first_version=1)
    write(store, "a", colour="red")
    remove(store, "a")
    line = store.history.read(1, 1)[0].line(EVERYTHING)
    assert line is not None
    assert orjson.loads(line)["object"]["metadata"] == {
        "name": "a",
        "namespace": "ns",
        "resourceVersion": "3",
        "labels": {"colour": "red"},
    }


def test_history_is_bounded_and_says_what_it_forgot():
    store = Store(first_version=0, history=10)
    for number in range(100):
        write(store, f"n-{number}")
    kept = store.history.end - store.history.cursor_after(store.history.floor)
    assert 10 <= kept < 20
    with pytest.raises(ExpiredError):
        store.history.cursor_after(store.history.floor - 1)
    with pytest.raises(ExpiredError):
        store.history.read(0, 1)
    with pytest.raises(ExpiredError):
        store.entries_at(CONFIG_MAPS, 1, "", "")


def test_restarted_history_keeps_the_current_version_watchable():
    store = Store(first_version=1)
    write(store, "a")
    store.restart_history()
    cursor = store.history.cursor_after(store.version)
    write(store, "b")
    assert [name for _, name, _ in events(store, cursor=cursor)] == ["b"]
    with pytest.raises(ExpiredError):
        store.history.cursor_after(1)


def test_listeners_hear_of_changes_until_they_unsubscribe():
    store, heard = Store(), []
    unsubscribe = store.subscribe(lambda: heard.append(store.version))
    write(store, "a")
    unsubscribe()
    unsubscribe()
    write(store, "b")
    assert heard == [store.version - 1]
