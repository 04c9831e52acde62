"""The example runs as a user runs it, and shows that the ratios move."""

import re

from matplotlib.image import imread


def test_it_trains_and_draws_the_ratios(run_tool, repo, tmp_path):
    chart = tmp_path / 'ratios.png'
    output = run_tool(repo / 'examples/swap_the_norm.py', chart).stdout

    assert len(re.findall(r'^step \d of 5: loss \d+\.\d+$', output, re.MULTILINE)) == 5
    # a ResNet-18 has 20 norms, the FPN 8, the head 4
    layers, moved = re.search(r'(\d+) SN layers; .* moved most is (\d\.\d+)', output).groups()
    assert layers == '32'
    assert 0 < float(moved) < 1 / 3
    assert imread(chart).std() > 0


def test_it_stays_short(repo):
    lines = (repo / 'examples/swap_the_norm.py').read_text().splitlines()

    assert len(lines) < 80
