from kubedns.cluster.delivery import Change
from kubedns.cluster.holdings import Audit, Holdings

A, B, C = ("ns", "a"), ("ns", "b"), ("ns", "c")


def held(**versions: int) -> Holdings[str]:
    holdings: Holdings[str] = Holdings()
    for name, version in versions.items():
        holdings.put(("ns", name), version, f"{name}{version}")
    return holdings


def end(holdings: Holdings[str], audit: Audit[str], version: int) -> None:
    for key in holdings.held_keys():
        audit.compare(key, version)


def test_equal_object_at_a_new_version_is_no_change():
    holdings: Holdings[str] = Holdings()
    assert holdings.put(A, 1, "x") == Change(A, 1, 0, "x")
    assert holdings.put(A, 2, "x") is None
    assert holdings.version(A) == 2


def test_event_older_than_what_is_held_is_stale():
    holdings = held(a=5)
    assert holdings.is_stale(A, 4)
    assert not holdings.is_stale(A, 5)
    assert not holdings.is_stale(A, 0)


def test_list_gone_back_to_older_versions_replaces():
    holdings = held(a=900)
    assert holdings.put(A, 3, "restored") == Change(A, 3, 900, "restored")
    assert holdings.version(A) == 3


def test_version_that_is_no_number_is_always_news():
    holdings: Holdings[str] = Holdings()
    holdings.put(A, 0, "x")
    assert not holdings.has(A, 0)
    assert holdings.put(A, 0, "y") == Change(A, 0, 0, "y")


def test_buried_object_is_not_brought_back_by_older_events():
    holdings = held(a=5)
    holdings.remove(A, 9)
    holdings.bury(A, 9)
    assert holdings.is_stale(A, 9)
    assert not holdings.is_stale(A, 10)
    holdings.reached(8)
    assert holdings.is_stale(A, 7)
    holdings.reached(9)
    assert not holdings.is_stale(A, 7)


def test_distrusted_objects_are_news_again():
    holdings = held(a=5)
    holdings.distrust()
    assert not holdings.has(A, 5)
    assert holdings.put(A, 5, "a5") is not None
    assert holdings.held_keys() == [A]


def test_audit_repairs_what_the_watch_never_delivered():
    holdings = held(a=1, b=2)
    audit = Audit(holdings)
    assert not audit.see(A, 1)
    assert audit.see(C, 3)
    audit.suspect(C, 3, "c3")
    end(holdings, audit, 10)
    assert audit.suspicious
    assert audit.repairs() == [Change(C, 3, 0, "c3"), Change(B, 10, 2, None)]
    audit.end()
    assert holdings.version(C) == 3
    assert holdings.version(B) is None


def test_audit_repairs_an_older_object():
    holdings = held(a=1)
    audit = Audit(holdings)
    assert audit.see(A, 4)
    audit.suspect(A, 4, "a4")
    end(holdings, audit, 5)
    assert audit.repairs() == [Change(A, 4, 1, "a4")]


def test_audit_leaves_alone_what_the_watch_explains_in_time():
    holdings = held(a=1, b=1)
    audit = Audit(holdings)
    assert audit.see(A, 4)
    audit.suspect(A, 4, "a4")
    assert audit.see(C, 5)
    audit.suspect(C, 5, "c5")
    end(holdings, audit, 6)
    holdings.put(A, 4, "a4")  # the watch delivers the same
    holdings.put(C, 7, "c7")  # something newer
    holdings.remove(B, 6)  # and the removal
    assert audit.repairs() == []


def test_audit_does_not_bring_back_what_the_watch_deleted_meanwhile():
    holdings = held(a=1)
    audit = Audit(holdings)
    holdings.remove(A, 8)
    holdings.bury(A, 8)
    holdings.reached(8)
    assert not audit.see(A, 1)
    end(holdings, audit, 7)
    assert not audit.suspicious
    audit.end()


def test_audit_is_void_once_a_list_replaces():
    holdings = held(a=1)
    audit = Audit(holdings)
    holdings.void_audit()
    assert audit.void
    audit.end()
    assert not Audit(holdings).void


def test_audit_does_not_remove_what_came_after_its_list():
    holdings = held(a=1)
    audit = Audit(holdings)
    holdings.put(B, 9, "b9")
    audit.see(A, 1)
    end(holdings, audit, 7)
    assert not audit.suspicious


def test_repaired_removal_is_not_undone_by_a_late_event():
    holdings = held(a=1)
    audit = Audit(holdings)
    end(holdings, audit, 7)
    assert audit.repairs() == [Change(A, 7, 1, None)]
    audit.end()
    assert holdings.is_stale(A, 6)


def test_audit_of_a_list_that_begins_again_forgets_what_it_saw():
    holdings = held(a=1)
    audit = Audit(holdings)
    audit.see(A, 1)
    audit.restart()
    end(holdings, audit, 7)
    assert audit.suspicious
