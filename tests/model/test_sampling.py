import pytest

from harness.model.sampling import Sampling, of_failures, of_uploads, of_uses


def chosen(sampling: Sampling, count: int, kind: str = "train") -> list[int]:
    return [number for number in range(count) if sampling.chooses(kind)]


def test_the_first_are_chosen_and_then_ever_fewer() -> None:
    assert chosen(Sampling(3, 100), 40) == [0, 1, 2, 4, 6, 8, 12, 16, 20, 24, 32]


def test_each_kind_is_chosen_from_by_itself() -> None:
    sampling = Sampling(2, 100)
    assert [chosen(sampling, 4, kind) for kind in ("train", "evaluate")] == [[0, 1, 2], [0, 1, 2]]


def test_no_more_are_chosen_than_allowed_of_all_kinds_together() -> None:
    sampling = Sampling(10, 15)
    assert len(chosen(sampling, 1000, "train") + chosen(sampling, 1000, "evaluate")) == 15


def test_a_long_test_costs_the_logarithm_of_its_size() -> None:
    assert len(chosen(Sampling(10, 10_000), 100_000)) < 150


@pytest.mark.parametrize(
    ("make", "dense", "most"), [(of_uploads, 10, 300), (of_failures, 20, 100), (of_uses, 100, 3000)]
)
def test_what_is_looked_at_closely_is_bounded(make, dense: int, most: int) -> None:
    assert chosen(make(), dense + 2)[-1] == dense
    sampling = make()
    assert sum(sampling.chooses(f"task-{k}") for k in range(most + 50)) == most
