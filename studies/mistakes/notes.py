"""Why it is fine that a tool goes on after a change and says nothing, by the change."""

_NUMBER = 'the toolbox takes any number here'
_NO_LIMIT = 'a negative number means no limit'
_DECODED = 'the decoder gives three channels of 8 bits'
_FEWER = 'a part of the pyramid is enough'

NOTES = {
    # Settings.
    '`train_dataloader.batch_size = 1000`': 'one batch holds all images',
    "`train_dataloader.sampler.shuffle = 'no'`": 'any text is true in Python: it is shuffled',
    'without `train_dataloader.batch_size`': 'mmengine takes one image',
    '`train_dataloader.dataset.test_mode = True`': 'the pipeline loads the boxes',
    'without `optim_wrapper.optimizer.lr`': "torch's own learning rate, 0.001",
    '`param_scheduler = []`': 'the learning rate stays as it is',
    '`model.roi_head.bbox_roi_extractor.featmap_strides = [4, 8]`': _FEWER,
    '`model.head.topk = (1, 5)`': 'the head computes no accuracy while it trains',
    '`model.data_preprocessor.mean = [0.0]`': 'one number for all channels',
    '`model.data_preprocessor.size = (8, 8)`': 'images are only padded to it; these are larger',
    '`model.train_cfg.rcnn.sampler.num = -1`': 'MMDetection then samples all boxes but one',
    '`default_hooks.checkpoint.interval = 0`': 'only the last checkpoint is saved',
    '`default_hooks.logger = None`': 'mmengine takes its own',
    'without `custom_imports`': 'our tools import the package',
    "`env_cfg.dist_cfg.backend = 'ncll'`": 'only trainings of several processes use it',
    "`log_processor = {'window_size': 0}`": 'the log averages over another window',
    "`launcher = 'slurmm'`": '`--launcher` sets it',
    '`resume = True`': 'it says that there is no checkpoint, and starts anew',
    '`work_dir = 3`': '`--work-dir` sets it',
    # Settings, drawn.
    "`model.test_cfg.rcnn.nms.iou_threshold = '0.5'`": 'mmcv reads the number in the text',
    '`model.test_cfg.rcnn.nms.iou_threshold = -0.5`': _NUMBER,
    '`model.train_cfg.rpn.assigner.match_low_quality = None`': 'the same as False',
    '`model.train_cfg.rpn.assigner.min_pos_iou = -0.3`': _NUMBER,
    '`model.train_cfg.rpn.assigner.neg_iou_thr = inf`': _NUMBER,
    '`model.test_cfg.rcnn.max_per_img = -10`': _NO_LIMIT,
    '`model.train_cfg.rpn_proposal.nms_pre = -50`': _NO_LIMIT,
    '`model.roi_head.bbox_roi_extractor.featmap_strides = [4, 8, 16]`': _FEWER,
    '`model.roi_head.mask_roi_extractor.featmap_strides = [4, 8, 16]`': _FEWER,
    '`model.rpn_head.anchor_generator.strides.4 = [64, 64]`': 'a stride for each side',
    '`visualizer.vis_backends = []`': 'the config asks for no file of losses',
    '`default_hooks.visualization.engable` in place of `enable`': 'its hook takes any option',
    '`train_cfg._scope_ = None`': 'the scope of the config',
    '`visualizer._scope_ = None`': 'the scope of the config',
    '`default_hooks.timer._scope_ = None`': 'the scope of the config',
    '`data_preprocessor.mean.2 = -103.53`': _NUMBER,
    '`data_preprocessor.num_classes = [10, 10]`': 'only augmentations of whole batches use it',
    '`custom_imports.imports = []`': 'our tools import the package',
    # Annotations.
    'the ids of images are text': 'an id may be anything',
    'half of the images have no object, and all are kept': 'background alone is data, too',
    'an annotation is a crowd': 'MMDetection does not train on crowds',
    'an annotation has no iscrowd': 'the same as 0',
    'a polygon lies outside the image': 'its mask is empty; its box is used',
    # Images.
    'an image is missing': 'the folder is the list of images',
    'an image has 3000 × 2000 pixels': 'it is resized as the pipeline says',
    'an image has 1 × 1 pixel': 'it is resized as the pipeline says',
    'an image has 500 × 1 pixels': 'it is resized as the pipeline says',
    'an image is grey': _DECODED,
    'an image has a palette': _DECODED,
    'an image has one bit': _DECODED,
    'an image has 16 bits': _DECODED,
    'an image is RGBA': _DECODED,
    'an image is CMYK': _DECODED,
    'an image is a GIF': _DECODED,
    'an image is in numbers with fractions': 'the decoder scales it to 8 bits',
    # Labels.
    'a label map is empty of labels (255)': 'its pixels do not count',
    'a label map has a palette': 'its values are the numbers, not the colours',
    'a label map has 16 bits': 'its values are the numbers',
    'all label maps have one class': 'the other class may be rare',
    'the two colours of the palette are equal': 'only pictures show them',
    '`reduce_zero_label` by mistake': 'the option says that 0 is no class',
    'a file that is no image': 'only the endings of images are read',
    # Weights.
    '`load_from`: weights: one has another shape': 'the log says which layers it fills',
    'weights: a detector with masks': 'its mask head is not used',
    '`test_evaluator = []`': 'the config asks for no metric',
    # Files and folders.
    'the work folder has a name with spaces and ä': 'it is used as it is',
    'spaces and letters such as é and 数 in paths': 'they are used as they are',
    'an image has a name with spaces, é and 数': 'it is used as it is',
    'a class has a name with spaces, é and 数': 'it is used as it is',
}
