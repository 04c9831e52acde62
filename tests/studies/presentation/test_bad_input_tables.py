"""The tables of mistakes count them and show what each tool said."""

from studies.presentation.bad_input_tables import bad_input_tables, count_table

BASE = dict(part='Images', task='map', tool='train.py', code=0, said=[], note='')
RECORDS = [
    dict(BASE, change='an image is text', ends='sentence', code=2, said=['a_b.jpg is no image.']),
    dict(BASE, change='an image is odd', ends='trains', said=['it is odd.']),
    dict(BASE, change='an image is grey', ends='trains', note='the decoder | does it'),
    dict(BASE, part='Labels', change='`a`', ends='traceback', code=1, said=['<x>'], tool='test.py'),
]


def test_counts() -> None:
    assert count_table(RECORDS).splitlines()[2:] == [
        '| Images | 3 | 1 | 1 | 1 |',
        '| Labels | 1 | 0 | 0 | 0 |',
        '| **all** | 4 | 1 | 1 | 1 |',
    ]


def test_rows() -> None:
    page = bad_input_tables(RECORDS)
    assert '## Images\n' in page
    assert '| label maps | an image is text | sentence | 2 | a\\_b.jpg is no image. |' in page
    assert '| trains | 0 | nothing: the decoder \\| does it |' in page
    assert '| label maps | `a` (test) | traceback | 1 | \\<x> |' in page
