"""Every config of the zoos that builds as it is builds with SN, in place of all its norms."""

import pytest

from studies.presentation.zoo_tables import has_norms, is_all_sn
from studies.zoos.survey import survey

# From the papers and sources: a ResNet-18 has 20 BatchNorms, a ResNet-50 53; each kind of layer,
# the forms of model that need care, and what cannot be read or has no norm.
FEW = {
    'mmdet': {
        'retinanet/retinanet_r18_fpn_1x_coco.py': {'BN': 20},
        # eight in the head
        'fcos/fcos_r50-caffe_fpn_gn-head_1x_coco.py': {'BN': 53, 'GN': 8},
        # no BatchNorm at all
        'gn/mask-rcnn_r50_fpn_gn-all_2x_coco.py': {'GN': 53 + 8 + 8},
        # a teacher with norms of its own, which is no part of the trained model
        'ld/ld_r18-gflv1-r101_fpn_1x_coco.py': {'BN': 20, 'GN': 8},
        'strong_baselines/mask-rcnn_r50_fpn_rpn-2conv_4conv1fc_syncbn-all_lsj-100e_coco.py': {
            'SyncBN': 53 + 8,
            'MMSyncBN': 8,
        },
        # A vision transformer with LayerNorm alone.
        'pvt/retinanet_pvtv2-b0_fpn_1x_coco.py': {},
    },
    'mmseg': {
        'fcn/fcn_r18b-d8_4xb2-80k_cityscapes-512x1024.py': {'SyncBN': 20 + 3 + 1},
        'segmenter/segmenter_vit-t_mask_8xb1-160k_ade20k-512x512.py': {},
    },
    'mmpretrain': {
        'resnet/resnet18_8xb16_cifar10.py': {'BN': 20},
        'densenet/densenet121_4xb256_in1k.py': {'BN': 121},
    },
}


def test_a_few_configs_have_sn_in_place_of_each_norm(toolbox: str) -> None:
    wanted = FEW[toolbox]
    for record in survey(toolbox, list(wanted)):
        layers = wanted[record['config']]
        assert record['norms'] == layers
        assert record.get('sn', 0) == sum(layers.values())
        assert 'left' not in record


def test_a_file_without_a_model_is_told_from_one_that_cannot_be_read() -> None:
    pytest.importorskip('mmdet')
    paths = ['common/lsj-100e_coco-detection.py', 'missing.py']
    without, missing = survey('mmdet', paths)
    assert without['no_model'] == 'has no model'
    assert missing['no_model'].startswith('FileNotFoundError')


@pytest.mark.slow
def test_every_config_that_builds_builds_with_sn(toolbox: str) -> None:
    records = list(survey(toolbox))
    assert sum('norms' in record for record in records) >= 0.8 * len(records)
    assert sum(map(has_norms, records)) >= 270
    others = [r for r in records if has_norms(r) and not is_all_sn(r)]
    # SparK's encoder normalizes the visible places of a masked image alone: a norm of another kind.
    assert all(record['config'].startswith('spark/spark_sparse-resnet50') for record in others)
    assert all(record['left'] == {'SyncBN: a forward of its own': 57} for record in others)
