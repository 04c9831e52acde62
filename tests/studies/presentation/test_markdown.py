"""Groups keep the order of their first items, and each is a row."""

from studies.presentation.markdown import group_by, table


def test_groups_in_the_order_of_their_first_items() -> None:
    assert group_by([3, 1, 5, 2, 4], lambda n: n % 2 == 0) == {False: [3, 1, 5], True: [2, 4]}


def test_row_per_group_with_its_key_and_its_columns() -> None:
    columns = {'least': lambda group: str(min(group)), 'most': lambda group: str(max(group))}
    key = lambda n: ('even' if n % 2 == 0 else 'odd',)  # noqa: E731
    assert table([3, 1, 5, 2, 4], ['kind'], key, columns) == (
        '| kind | least | most |\n| --- | --- | --- |\n| odd | 1 | 5 |\n| even | 2 | 4 |'
    )


def test_no_items_leave_the_header() -> None:
    assert table([], ['a'], lambda _: ('x',), {'b': len}) == '| a | b |\n| --- | --- |'
