"""Label and field selectors, by the semantics of Kubernetes."""

import pytest

from kubedns.local.api.selectors import Selector, parse_fields, parse_labels

_HEADLESS = "service.kubernetes.io/headless"


@pytest.mark.parametrize(
    ("text", "labels", "meant"),
    [
        ("", {}, True),
        ("a", {"a": ""}, True),
        ("a", {}, False),
        ("!a", {}, True),
        ("! a", {"a": "1"}, False),
        ("a=1", {"a": "1"}, True),
        ("a==1", {"a": "2"}, False),
        ("a = 1", {"a": "1"}, True),
        ("a!=1", {}, True),
        ("a!=1", {"a": "2"}, True),
        ("a!=1", {"a": "1"}, False),
        ("a=", {"a": ""}, True),
        ("a=", {}, False),
        ("a in (1, 2)", {"a": "2"}, True),
        ("a in (1,2)", {}, False),
        ("a notin (1,2)", {}, True),
        ("a notin (1,2)", {"a": "1"}, False),
        ("a in (1,2),b", {"a": "1", "b": "x"}, True),
        ("a in (1,2),b", {"a": "1"}, False),
        ("a>3", {"a": "4"}, True),
        ("a<3", {"a": "x"}, False),
        (f"!{_HEADLESS},example.com/by!=me", {"example.com/by": "you"}, True),
        (f"!{_HEADLESS},example.com/by!=me", {_HEADLESS: ""}, False),
    ],
)
def test_label_selectors_mean_what_kubernetes_says(text, labels, meant):
    assert Selector(parse_labels(text)).matches(labels, "ns", "name") is meant


@pytest.mark.parametrize("text", ["a b", "a in 1", "=1", "a=(", "a in (1", "a=b=c", ","])
def test_label_selectors_that_cannot_be_read_are_refused(text):
    with pytest.raises(ValueError, match="unable to parse requirement"):
        parse_labels(text)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("metadata.name=web", True),
        ("metadata.name=web,metadata.namespace=shop", True),
        ("metadata.name!=web", False),
        ("metadata.namespace==other", False),
    ],
)
def test_field_selectors_look_at_name_and_namespace(text, meant):
    assert Selector(fields=parse_fields(text)).matches({}, "shop", "web") is meant


def test_other_field_selectors_are_refused():
    with pytest.raises(ValueError, match=r"field label not supported: status\.phase"):
        parse_fields("status.phase=Active")
