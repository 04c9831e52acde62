"""Functions by name that copy a tensor's values into another layout in memory."""

import torch

LAYOUTS = {
    'contiguous': torch.Tensor.contiguous,
    'channels_last': lambda x: x.movedim(1, -1).contiguous().movedim(-1, 1),
    'reversed': lambda x: (
        x.permute(*range(x.dim())[::-1]).contiguous().permute(*range(x.dim())[::-1])
    ),
    'samples_inside': lambda x: x.movedim(0, -1).contiguous().movedim(-1, 0),
    'last_two_swapped': lambda x: x.transpose(-1, -2).contiguous().transpose(-1, -2),
    'channels_between': lambda x: x.movedim(1, -2).contiguous().movedim(-2, 1),
    'every_second': lambda x: torch.stack([x, x], -1).flatten(-2)[..., ::2],
    'every_second_channel': lambda x: torch.stack([x, x], 2).flatten(1, 2)[:, ::2],
    'part': lambda x: torch.nn.functional.pad(x, (1, 2, 3, 0))[..., 3:, 1 : x.shape[-1] + 1],
}
# The same where values may be repeated.
REPEATED = {
    'one_sample_repeated': lambda x: x[:1].expand(x.shape),
    'one_number_repeated': lambda x: x.flatten()[0].expand(x.shape),
}
