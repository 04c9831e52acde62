"""A small demo data set that the tests of this folder share."""

import pytest

from studies.demo.dataset import DemoParameters, make_demo_data


@pytest.fixture(scope='session')
def demo_root(tmp_path_factory):
    root = tmp_path_factory.mktemp('shared') / 'demo'
    make_demo_data(root, DemoParameters(train=6, val=3, seed=3))
    return root
