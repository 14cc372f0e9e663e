"""What a supervisor reads of its command's output, however much there is."""

import pytest

from harness.drive.http.supervisor import Lines, Tail


def read(*chunks: bytes) -> Lines:
    lines = Lines()
    for chunk in chunks:
        lines.feed(chunk)
    lines.end()
    return lines


@pytest.mark.parametrize(("chunks", "seconds", "unreadable"), [
    ([b'{"phase": "read", "seconds": 1.5}\n'], {"read": 1.5}, 0),
    ([b'{"phase": "read", "seconds": 1.5}'], {"read": 1.5}, 0),
    ([b'text\n {"phase": "read", "seconds": 1}\nmore {"phase": "x", "seconds": 1}\n'], {"read": 1.0}, 0),
    ([b'{"pha', b'se": "read", "sec', b'onds": 1}\n{"phase": "write", "seconds": 2}\n'], {"read": 1.0, "write": 2.0}, 0),
    ([b'{"phase": "a", "seconds": 1}\n{"phase": "b", "seconds": 1}\n{"phase": "a", "seconds": 2}\n'], {"a": 3.0, "b": 1.0}, 0),
    ([b'{"other": "json"}\n[1]\n{}\n'], {}, 0),
    ([b'{"phase": "a"}\n'], {}, 1),
    ([b'{"phase": "a", "seconds": -1}\n'], {}, 1),
    ([b'{"phase": "a", "seconds": NaN}\n'], {}, 1),
    ([b'{"phase": "a", "seconds": Infinity}\n'], {}, 1),
    ([b'{"phase": "", "seconds": 1}\n'], {}, 1),
    ([b'{"phase": "a", "seconds": "soon"}\n'], {}, 1),
    ([b'{"phase": "a", "seconds": 1\n'], {}, 1),
    ([b'{"phase": 5, "seconds": 1}\n'], {}, 1),
    ([b'{"remark": 5}\n{"remark": ""}\n'], {}, 2),
    ([b'{"phase":' + b"[" * 4000 + b"\n"], {}, 1),
    ([b'{"phase": "', b"n" * 5000, b'", "seconds": 1}\n'], {}, 0),
    ([b'{"phase": "' + b"n" * 5000 + b'", "seconds": 1}\n'], {}, 0),
])  # fmt: skip
def test_phases_are_read_and_all_other_lines_ignored(chunks, seconds, unreadable):
    lines = read(*chunks)
    assert (lines.seconds, lines.unreadable) == (seconds, unreadable)


def test_remarks_are_kept_once_and_five_at_most():
    lines = read(
        *(b'{"remark": "%d"}\n' % number for number in (1, 1, 2, 3, 4, 5, 6)), b'{"remark": "%s"}' % (b"x" * 500)
    )
    assert (lines.remarks, lines.unreadable) == (["1", "2", "3", "4", "5"], 0)
    assert read(b'{"remark": "%s"}' % (b"x" * 500)).remarks == ["x" * 200]


def test_a_line_without_an_end_is_not_kept():
    lines = Lines()
    for _ in range(1000):
        lines.feed(b"x" * 65536)
        assert len(lines._rest) <= 4096
    lines.feed(b'\n{"phase": "read", "seconds": 1}\n')
    assert lines.seconds == {"read": 1.0}


def test_of_many_names_only_a_hundred_are_kept():
    lines = read(*(b'{"phase": "p%d", "seconds": 1}\n' % number for number in range(150)))
    assert (len(lines.seconds), lines.unreadable) == (100, 50)


def test_the_tail_is_the_end_of_a_stream():
    tail = Tail()
    for number in range(3000):
        tail.feed(b"line %d\n" % number)
    assert tail.last.endswith(b"line 2999\n")
    assert len(tail.last) == 4096
