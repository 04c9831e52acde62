"""What the processes found becomes one clause."""

from sn_openmmlab.hooks.non_finite.finding import Finding, Stage, describe, first_of


def test_first_place_on_all_processes_has_the_images_of_those_that_found_it() -> None:
    later = Finding(Stage.LAYER, 4, 'later', ['d.jpg'])
    here = Finding(Stage.LAYER, 3, 'here', ['a.jpg', 'b.jpg'])
    too = Finding(Stage.LAYER, 3, 'here', ['b.jpg', 'c.jpg'])
    last = Finding(Stage.LOSS, 0, 'loss', ['e.jpg'])
    found = first_of([later, here, last, too])
    assert (found.what, found.images) == ('here', ['a.jpg', 'b.jpg', 'c.jpg'])
    assert first_of([last, later]) == later


def test_clause_names_the_images_but_not_thousands() -> None:
    def said(*images: str) -> str:
        return describe(Finding(Stage.LAYER, 0, 'conv is', images))

    assert said('a.jpg') == 'conv is, on the image a.jpg'
    assert said('a.jpg', 'b.jpg') == 'conv is, on the images a.jpg, b.jpg'
    long = f'{"folder/" * 30}a.jpg'
    assert said(long) == f'conv is, on the image {long}'
    assert said(*map(str, range(20))).endswith(', 14, 15 and 4 more')
    assert said() == 'conv is (the data give no paths of images)'
