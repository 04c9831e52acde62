"""The normalization layers: parameters, running statistics and `forward`.

- The layers: `switch_norm.py`, `sync_switch_norm.py`, and `norm_act.py` for norms that activate;
  `batch_renorm.py`, which SN is compared with.
- How they work: `arguments.py`, `running.py` (running statistics), `settings.py` and `loading.py`
  (state dicts), `leaf.py` (torch.fx and counters) and `scripted.py` (`torch.jit.script`).
- What one does with them: `convert/`, and `batch_average.py` with `model_copy.py`; `names.py` has
  the names for configs.
"""
