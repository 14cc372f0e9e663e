"""The view that collectors write together, and its JSON."""

from harness.model.live.observer import LiveObserver


def test_collectors_fill_in_their_own_fields():
    view = LiveObserver(at=5, nodes=3, other={"queue": 7}) | LiveObserver(nodes=4, services_up={"a": False})
    assert view == LiveObserver(at=5, nodes=4, services_up={"a": False}, other={"queue": 7})


def test_the_view_is_one_flat_object_of_what_is_known():
    view = LiveObserver(at=5, store_writable=False, last_error="", other={"queue": 7})
    assert view.to_json() == {"at": 5, "store_writable": False, "last_error": "", "queue": 7}
    assert LiveObserver.from_json(view.to_json()) == view


def test_ends_that_are_not_known_at_once_grow_old_even_if_nothing_is_written_any_more():
    assert LiveObserver(at=7_500_000_000, ends_at=5_000_000_000).ends_age_s(9_000_000_000) == 4.0
    assert LiveObserver(at=5).ends_age_s(9) is None
    assert LiveObserver(ends_at=5).ends_age_s(4) == 0.0, "the clock was set back"
