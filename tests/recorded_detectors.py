"""What the authors' detection code computed on stand-in weights, whole or as a part of its values.

`tests/data/released/detectors.pt` holds a part: for each tensor a few values at random places, the
inputs and the detections. Whoever has the whole record names its folder in SN_DETECTORS.
"""

import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

PART = Path(__file__).parents[0] / 'data/released/detectors.pt'
# By the layout of the file that the authors released.
CASES = ('faster_rcnn_r50_fpn_sn', 'mask_rcnn_r50_fpn_sn_8x1')
_INPUTS = ('input_times_32', 'rois', 'roi_levels', 'channel_stride')
_PICKED = 96


def whole_record() -> Path | None:
    """Return the folder of the whole record, or None if there is none."""
    folder = Path(os.environ.get('SN_DETECTORS', 'absent'))
    return folder if folder.is_dir() else None


def read(case: str, part: bool) -> dict[str, Any]:
    """Return what was recorded of a case."""
    if part:
        return torch.load(PART, weights_only=True)[case]
    return torch.load(whole_record() / f'{case}_outputs.pt', weights_only=True)


def values(name: str, tensor: Tensor, part: bool) -> Tensor:
    """Return the values of a tensor that are compared: all, or a part of them."""
    flat = tensor.flatten()
    if not part:
        return flat
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    return flat[torch.randint(len(flat), (_PICKED,), generator=generator)]


def our_part(name: str, theirs: Tensor) -> Tensor:
    """Return what MMDetection has of a recorded tensor: no rows of background but for the scores.

    The scores of the background move to the end.
    """
    if name == 'cls_logits':
        return theirs.roll(-1, 1)
    return theirs[:, {'box_deltas': 4, 'mask_logits': 1}.get(name, 0) :]


def stage_names(record: Mapping[str, Any]) -> list[str]:
    """Return the names of the recorded tensors of an input."""
    return list(record['channel_stride'])


def reduce(folder: Path) -> dict[str, Any]:
    """Return the part of a whole record: what PART holds."""
    made = {}
    for case in CASES:
        whole = torch.load(folder / f'{case}_outputs.pt', weights_only=True)
        record = whole['A']
        stages = {
            name: values(name, our_part(name, record[name]), part=True).clone()
            for name in stage_names(record)
        }
        made[case] = {
            'base_anchors': whole['base_anchors'],
            'A': {
                **{name: record[name] for name in (*_INPUTS, 'num_proposals')},
                'proposals': record['proposals'][:40].clone(),
                **stages,
            },
        }
        for photo in ('photo', 'photo_1x'):
            made[case][photo] = _reduce_photo(whole[photo])
    first, *others = made.values()
    # Kept once: torch writes a shared tensor once.
    for other in others:
        other['A']['input_times_32'] = first['A']['input_times_32']
        for photo in ('photo', 'photo_1x'):
            other[photo]['image'] = first[photo]['image']
    return made


def _reduce_photo(record: Mapping[str, Any]) -> dict[str, Any]:
    names = ('image', 'scale', 'max_size', 'blob_norm', 'im_scale', 'num_rois', 'detections')
    kept = {name: record[name] for name in names}
    blob = record['blob_every_4th_pixel']
    kept['blob_every_4th_pixel'] = values('blob', blob, part=True).clone()
    if 'pasted_masks_first' in record:
        kept['detection_masks_first'] = record['detection_masks_first'][:2].clone()
        kept['pasted_masks_first'] = record['pasted_masks_first'][:2].bool().clone()
    return kept


if __name__ == '__main__':
    torch.save(reduce(whole_record()), PART)
