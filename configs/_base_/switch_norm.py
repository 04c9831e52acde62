# What makes a config use Switchable Normalization: the import that registers it, and its name.
custom_imports = dict(imports=['sn_openmmlab'], allow_failed_imports=False)
norm_cfg = dict(type='SN')
