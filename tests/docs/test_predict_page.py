"""The page on predictions shows the JSON that tests/prediction and tests/tools compare."""

import json
from pathlib import Path

from tests.docs.conftest import blocks

DETECTIONS = {'image', 'labels', 'class_names', 'scores', 'bboxes', 'masks'}
LABEL_MAP = {'image', 'label_map', 'classes'}
CLASS = {'image', 'label', 'class_name', 'score', 'scores'}


def test_examples_have_the_keys_that_are_written(repo: Path) -> None:
    examples = [json.loads(text) for text in blocks(repo / 'docs/guides/predict.md', 'json')]
    assert [set(example) for example in examples] == [DETECTIONS, LABEL_MAP, CLASS]
    _, segmenter, classifier = examples
    shares = [one['share'] for one in segmenter['classes']]
    assert sum(shares) == 1
    assert {key for one in segmenter['classes'] for key in one} == {'label', 'class_name', 'share'}
    assert classifier['score'] == classifier['scores'][classifier['label']]
