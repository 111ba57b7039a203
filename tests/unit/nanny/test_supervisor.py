"""The life of the child as a pure machine: events in, actions out."""

from hypothesis import given
from hypothesis import strategies as st

from nanny.supervisor import (
    FIRST_RETRY,
    LONGEST_RETRY,
    RESTARTS,
    STEADY,
    ClearCache,
    End,
    Event,
    Exited,
    FilesChanged,
    GraceOver,
    Kill,
    LogStatistics,
    Ready,
    Reason,
    RetryAfter,
    RetryDue,
    Spawn,
    State,
    StatisticsDue,
    Stop,
    Supervisor,
    Terminate,
    Wanted,
)

A, B, C = ("--a",), ("--b",), ("--c",)
DIED = Exited("dnsmasq exited with status 3")
BUSY = Exited("dnsmasq exited with status 2", port_busy=True)


def after(*events: Event) -> Supervisor:
    supervisor = Supervisor()
    for event in events:
        supervisor.handle(event)
    return supervisor


def test_the_first_arguments_start_the_child():
    supervisor = Supervisor()
    assert list(supervisor.handle(Wanted(A))) == [Spawn(A, Reason.START)]
    assert not supervisor.handle(Ready())
    assert supervisor.state is State.RUNNING


def test_other_arguments_end_the_child_and_start_the_next_only_when_it_is_gone():
    supervisor = after(Wanted(A), Ready())
    assert list(supervisor.handle(Wanted(B))) == [Terminate()]
    assert supervisor.state is State.STOPPING
    assert list(supervisor.handle(Exited("as told"))) == [Spawn(B, Reason.CONFIG)]


def test_the_same_arguments_change_nothing():
    assert not after(Wanted(A), Ready()).handle(Wanted(A))


def test_arguments_that_arrive_during_a_restart_are_the_ones_that_count():
    supervisor = after(Wanted(A), Ready(), Wanted(B))
    assert not supervisor.handle(Wanted(C))
    assert list(supervisor.handle(Exited("as told"))) == [Spawn(C, Reason.CONFIG)]


def test_arguments_that_arrive_before_the_child_is_up_end_it():
    supervisor = after(Wanted(A))
    assert list(supervisor.handle(Wanted(B))) == [Terminate()]
    assert list(supervisor.handle(Exited("as told"))) == [Spawn(B, Reason.CONFIG)]


def test_a_child_that_ignores_being_told_is_killed_after_the_grace_time():
    supervisor = after(Wanted(A), Ready(), Wanted(B))
    assert list(supervisor.handle(GraceOver())) == [Kill()]
    assert list(supervisor.handle(Exited("killed"))) == [Spawn(B, Reason.CONFIG)]


def test_a_grace_time_that_is_over_too_late_does_nothing():
    assert not after(Wanted(A), Ready(), Wanted(B), Exited("as told")).handle(GraceOver())


def test_a_child_that_dies_is_started_again_at_once():
    supervisor = after(Wanted(A), Ready())
    assert list(supervisor.handle(DIED)) == [RetryAfter(0, DIED.how)]
    assert list(supervisor.handle(RetryDue())) == [Spawn(A, Reason.DIED)]


def test_a_child_that_keeps_dying_is_given_pauses_that_grow_and_then_up():
    supervisor = after(Wanted(A), Ready())
    for number, pause in enumerate(RESTARTS):
        assert list(supervisor.handle(DIED)) == [RetryAfter(pause, DIED.how)]
        supervisor.handle(RetryDue())
        if number % 2:  # it may come up, or not any more
            supervisor.handle(Ready())
    assert list(RESTARTS) == sorted(RESTARTS)
    assert list(supervisor.handle(DIED)) == [End(DIED.how)]
    assert supervisor.state is State.EXITED
    assert not supervisor.handle(Wanted(B))


def test_a_child_that_was_up_for_a_while_is_started_again_however_often_it_dies():
    supervisor = after(Wanted(A), Ready())
    steady = Exited("dnsmasq was killed by SIGKILL", up=STEADY)
    for _ in range(3 * len(RESTARTS)):
        assert list(supervisor.handle(steady)) == [RetryAfter(0, steady.how)]
        supervisor.handle(RetryDue())
        supervisor.handle(Ready())


def test_arguments_that_arrive_while_a_dead_child_waits_are_used_and_may_still_give_way():
    supervisor = after(Wanted(A), Ready(), DIED)
    assert not supervisor.handle(Wanted(B))
    assert list(supervisor.handle(RetryDue())) == [Spawn(B, Reason.DIED)]
    assert list(supervisor.handle(DIED)) == [Spawn(A, Reason.FALLBACK)]


def test_a_child_that_finds_its_port_busy_after_a_death_waits_for_it():
    supervisor = after(Wanted(A), Ready(), DIED, RetryDue())
    assert list(supervisor.handle(BUSY)) == [RetryAfter(FIRST_RETRY)]
    assert list(supervisor.handle(RetryDue())) == [Spawn(A, Reason.PORT_BUSY)]


def test_stopping_while_a_dead_child_waits_ends_without_another():
    supervisor = after(Wanted(A), Ready(), DIED)
    assert list(supervisor.handle(Stop())) == [End(None)]
    assert not supervisor.handle(RetryDue())


def test_a_first_child_that_cannot_start_ends_everything():
    assert list(after(Wanted(A)).handle(DIED)) == [End(DIED.how)]


def test_a_busy_port_is_tried_again_with_growing_pauses():
    supervisor = after(Wanted(A))
    pauses = []
    for _ in range(12):
        (retry,) = supervisor.handle(BUSY)
        assert isinstance(retry, RetryAfter)
        pauses.append(retry.seconds)
        assert list(supervisor.handle(RetryDue())) == [Spawn(A, Reason.PORT_BUSY)]
    assert pauses[0] == FIRST_RETRY
    assert pauses == sorted(pauses)
    assert pauses[-1] == LONGEST_RETRY


def test_the_pauses_begin_anew_after_a_child_was_up():
    supervisor = after(Wanted(A), BUSY, RetryDue(), BUSY, RetryDue(), Ready(), Wanted(B), Exited("as told"))
    assert list(supervisor.handle(BUSY)) == [RetryAfter(FIRST_RETRY)]


def test_arguments_that_arrive_while_the_port_is_busy_are_used_at_the_next_try():
    supervisor = after(Wanted(A), BUSY)
    assert not supervisor.handle(Wanted(B))
    assert list(supervisor.handle(RetryDue())) == [Spawn(B, Reason.PORT_BUSY)]


def test_arguments_that_fail_after_a_restart_give_way_to_the_last_that_worked():
    supervisor = after(Wanted(A), Ready(), Wanted(B), Exited("as told"))
    assert list(supervisor.handle(DIED)) == [Spawn(A, Reason.FALLBACK)]
    assert list(supervisor.handle(DIED)) == [RetryAfter(0, DIED.how)]
    assert list(supervisor.handle(RetryDue())) == [Spawn(A, Reason.DIED)]


def test_stopping_tells_the_child_and_ends_without_failure():
    supervisor = after(Wanted(A), Ready())
    assert list(supervisor.handle(Stop())) == [Terminate()]
    assert not supervisor.handle(Wanted(B))
    assert not supervisor.handle(Stop())
    assert list(supervisor.handle(GraceOver())) == [Kill()]
    assert list(supervisor.handle(Exited("killed"))) == [End(None)]


def test_stopping_during_a_restart_starts_no_other_child():
    supervisor = after(Wanted(A), Ready(), Wanted(B))
    assert not supervisor.handle(Stop())
    assert list(supervisor.handle(Exited("as told"))) == [End(None)]


def test_stopping_without_a_child_ends_at_once():
    assert list(Supervisor().handle(Stop())) == [End(None)]
    supervisor = after(Wanted(A), BUSY)
    assert list(supervisor.handle(Stop())) == [End(None)]
    assert not supervisor.handle(RetryDue())


def test_statistics_are_asked_only_of_a_child_that_is_up():
    assert not after(Wanted(A)).handle(StatisticsDue())
    assert list(after(Wanted(A), Ready()).handle(StatisticsDue())) == [LogStatistics()]
    assert not after(Wanted(A), Ready(), Wanted(B)).handle(StatisticsDue())


def test_changed_hosts_are_told_at_once_or_as_soon_as_the_child_is_up():
    assert list(after(Wanted(A), Ready()).handle(FilesChanged())) == [ClearCache()]
    assert list(after(Wanted(A), FilesChanged()).handle(Ready())) == [ClearCache()]
    assert not after(FilesChanged(), Wanted(A)).handle(Ready())
    assert not after(Wanted(A), Ready(), Wanted(B), FilesChanged(), Exited("as told")).handle(Ready())


def test_files_that_changed_with_the_arguments_are_read_by_the_next_child_alone():
    assert list(Supervisor().handle(Wanted(A, files_changed=True))) == [Spawn(A, Reason.START)]
    assert not after(Wanted(A, files_changed=True)).handle(Ready())
    assert list(after(Wanted(A), Ready()).handle(Wanted(B, files_changed=True))) == [Terminate()]
    assert list(after(Wanted(A), Ready()).handle(Wanted(A, files_changed=True))) == [ClearCache()]


EVENTS = st.sampled_from(
    [Wanted(A), Wanted(B), Wanted(C), Ready(), DIED, BUSY, RetryDue(), GraceOver(), Stop(), FilesChanged()]
)


@given(st.lists(EVENTS, max_size=30))
def test_there_is_never_more_than_one_child_and_nothing_after_the_end(events):
    supervisor = Supervisor()
    alive = ended = False
    for event in events:
        if isinstance(event, Exited):
            if not alive:
                continue
            alive = False
        for action in supervisor.handle(event):
            assert not ended
            if isinstance(action, Spawn):
                assert not alive
                alive = True
            elif isinstance(action, End):
                assert not alive
                ended = True
            elif not isinstance(action, RetryAfter):
                assert alive
    assert ended == (supervisor.state is State.EXITED)
