"""What was measured, and what it is held against."""


class Table:
    """Prints each row as it is known; `missed` when one missed its bound on a machine that could have kept it."""

    def __init__(self) -> None:
        self.missed = False
        print(f"{'what':68}{'measured':>12}{'bound':>10}  verdict")

    def row(self, what: str, measured: str, bound: str = "", *, kept: bool = True, busy: bool = False) -> None:
        verdict = "" if not bound else "met" if kept else "machine is busy" if busy else "MISSED"
        self.missed |= verdict == "MISSED"
        print(f"{what:68}{measured:>12}{bound:>10}  {verdict}".rstrip(), flush=True)
