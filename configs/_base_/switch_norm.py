# What a config needs to use Switchable Normalization: the import that registers it, and its name.
# The variance of an instance divides by HW - 1, as in the networks of the authors.
custom_imports = dict(imports=['sn_openmmlab'], allow_failed_imports=False)
norm_cfg = dict(type='SN', correction=1)
