import json
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubedns.cluster import liststream
from kubedns.cluster.liststream import ListStream
from kubedns.cluster.watchstream import StreamError

DATA = Path(__file__).parents[2] / "data" / "apiserver"


def take(raw: bytes, step: int = 0) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    stream = ListStream()
    chunks = [raw[i : i + step] for i in range(0, len(raw), step)] if step else [raw]
    items = [item for chunk in chunks for item in stream.feed(chunk)]
    return items, stream.envelope()


@pytest.mark.parametrize(
    "name",
    [
        "services-list.http",
        "services-list-limit5-page1.http",
        "endpointslices-list-headless.http",
        "nodes-list.http",
    ],
)
@pytest.mark.parametrize("compact", [True, False])
@pytest.mark.parametrize("step", [0, 1, 7, 1000])
def test_recorded_list_cut_anywhere_gives_items_and_envelope(name, compact, step):
    raw = (DATA / name).read_bytes().partition(b"\r\n\r\n")[2]
    value = json.loads(raw)
    items, envelope = take(orjson.dumps(value) if compact else raw, step)
    assert items == value["items"]
    assert envelope == {**value, "items": []}


nested = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.text(alphabet='"\\{}[],:ab\n\u00e9', max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text('"\\{}[]a', max_size=3), inner, max_size=3)
    ),
    max_leaves=15,
)
items_of_a_list = st.lists(
    st.dictionaries(st.sampled_from(["metadata", "spec", "},{", '"']), nested, max_size=3)
)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(items_of_a_list, st.integers(1, 60), st.booleans(), st.booleans())
def test_any_list_cut_anywhere_gives_items_and_envelope(items, step, pretty, items_first):
    value: dict[str, Any] = {"metadata": {"resourceVersion": "5", "x": {"y": [[{}]]}}}
    value = {"items": items, **value} if items_first else {**value, "items": items}
    raw = json.dumps(value, indent=1).encode() if pretty else orjson.dumps(value)
    got, envelope = take(raw, step)
    assert got == items
    assert envelope == {**value, "items": []}


def test_list_without_items_is_an_envelope():
    assert take(b'{"metadata":{"resourceVersion":"1"},"items":null}') == (
        [],
        {"metadata": {"resourceVersion": "1"}, "items": None},
    )


@pytest.mark.parametrize(
    "raw", [b"", b"{", b'{"items":[{}', b"[]", b"nonsense", b'{"items":[{"a":}]}', b'{"a":"', b"}}"]
)
def test_list_that_is_cut_or_none_raises(raw):
    with pytest.raises(StreamError):
        take(raw)


def test_item_without_end_is_refused_at_the_limit():
    stream = ListStream()
    list(stream.feed(b'{"items":[{"metadata":"'))
    chunk = b"\\\\" * 32768
    for _ in range(liststream.LONGEST_ITEM // len(chunk) - 1):
        assert list(stream.feed(chunk)) == []
    with pytest.raises(StreamError, match="longer than"):
        list(stream.feed(chunk * 2))
