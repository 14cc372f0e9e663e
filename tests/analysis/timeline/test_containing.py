import re

import pandas as pd
import pyarrow as pa

from harness.analysis.timeline.columns import containing, position, within


def test_a_pattern_is_searched_in_each_text_and_missing_ones_are_empty():
    texts = pd.Series(["quota exceeded", None, "fine", "quota exceeded"], dtype="str")
    assert containing(texts, re.compile("quota")).tolist() == [True, False, False, True]
    assert containing(texts, re.compile("^$")).tolist() == [False, True, False, False]


def test_no_texts_are_found_nowhere():
    nothing, some = pd.Series([], dtype="str"), pd.Series(["a"], dtype="str")
    assert containing(nothing, re.compile("a")).size == position(nothing, some).size == within(nothing, some).size == 0


def test_a_column_in_chunks_is_searched_as_a_whole():
    texts = pd.concat([pd.Series(["a", "b"], dtype="str"), pd.Series(["b", None, "a"], dtype="str")])
    assert pa.array(texts).num_chunks == 2
    assert containing(texts, re.compile("a")).tolist() == [True, False, False, False, True]
