# STACK picks the toolbox distribution: onedl (default) or openmmlab, each in its own venv.
STACK ?= onedl
PYTHON ?= python3

VENV_onedl := .venv
VENV_openmmlab := .venv-openmmlab
VENV := $(VENV_$(STACK))
$(if $(VENV),,$(error STACK must be onedl or openmmlab, not '$(STACK)'))
PY := $(VENV)/bin/python
QUICKSTART := configs/demo/faster-rcnn_r18_fpn_sn-all_digits.py
QUICKSTART_MASK := configs/demo/mask-rcnn_r18_fpn_sn-all_digits.py
QUICKSTART_SEG := configs/demo/deeplab_r18b-d8_sn_digits.py
QUICKSTART_CLS := configs/demo/resnet18_sn_digits.py

.DEFAULT_GOAL := help
.PHONY: help env data quickstart quickstart-mask quickstart-seg quickstart-cls \
	test test-slow coverage benchmark \
	experiment experiment-from-bn experiment-from-imagenet experiment-from-cifar \
	experiment-variants experiment-batch-average experiment-sparse experiment-claims \
	experiment-longer-detection experiment-geometry experiment-style \
	experiment-released-detectors experiment-soak bad-inputs zoo \
	lint format docs docs-serve dist

help: ## list the targets
	@echo "make TARGET [STACK=onedl|openmmlab] [PYTHON=python3]"
	@sed -nE 's/^([a-z-]+):[^#]*## (.*)/  \1 - \2/p' Makefile

env: ## create the virtual environment (compiles mmcv once)
	@$(PYTHON) tools/setup_env.py $(STACK)

data: env ## generate the demo data set in data/demo
	$(PY) -m studies.make_demo_data --out data/demo

quickstart: data ## train a detector with SN on the demo data, evaluate it, show the result
	$(PY) tools/train.py $(QUICKSTART) --work-dir work_dirs/quickstart
	$(PY) tools/report.py $(QUICKSTART) --work-dir work_dirs/quickstart

quickstart-mask: data ## the same with masks: Mask R-CNN
	$(PY) tools/train.py $(QUICKSTART_MASK) --work-dir work_dirs/quickstart-mask
	$(PY) tools/report.py $(QUICKSTART_MASK) --work-dir work_dirs/quickstart-mask

quickstart-seg: data ## the same with label maps: DeepLab
	$(PY) tools/train.py $(QUICKSTART_SEG) --work-dir work_dirs/quickstart-seg
	$(PY) tools/report.py $(QUICKSTART_SEG) --work-dir work_dirs/quickstart-seg

quickstart-cls: data ## the same with classes: a ResNet-18
	$(PY) tools/train.py $(QUICKSTART_CLS) --work-dir work_dirs/quickstart-cls
	$(PY) tools/report.py $(QUICKSTART_CLS) --work-dir work_dirs/quickstart-cls

test: env ## run the tests
	OMP_NUM_THREADS=1 $(PY) -m pytest -q -n logical --maxprocesses 4 --dist loadfile \
		--no-loadscope-reorder --max-worker-restart 0

test-slow: env ## run the slow tests
	$(PY) -m pytest -q -m slow

coverage: env ## run the tests and report which lines they reach, also in coverage.xml
	OMP_NUM_THREADS=1 $(PY) -m pytest -q -n logical --maxprocesses 4 --dist loadfile \
		--no-loadscope-reorder --max-worker-restart 0 --cov --cov-report=term --cov-report=xml

benchmark: env ## time the layer and a training step on this CPU, into docs/speed
	$(PY) -m studies.benchmark_op --out docs/speed
	$(PY) -m studies.benchmark_step --out docs/speed
	$(PY) -m studies.benchmark_busy --out docs/speed
	$(PY) -m studies.benchmark_import --out docs/speed
	$(PY) -m studies.benchmark_sparse --out docs/speed --threads 1
	$(PY) -m studies.benchmark_host --out docs/speed --threads 1
	$(PY) -m studies.benchmark_guard --out docs/speed --threads 1

experiment: data ## train BN, GN and SN at small batches, three seeds each, into docs/small_batch
	$(PY) -m studies.small_batch --out docs/small_batch --work-dir work_dirs/small_batch

experiment-from-bn: data ## fine-tune SN from BatchNorm, three seeds each, into docs/from_batch_norm
	$(PY) -m studies.from_batch_norm --out docs/from_batch_norm --work-dir work_dirs/from_batch_norm

experiment-from-imagenet: env ## start SN from ImageNet weights on photographs (data/raccoon, data/bccd), into docs/from_imagenet
	$(PY) -m studies.kept_knowledge data/raccoon/images --out docs/from_imagenet
	$(PY) -m studies.from_imagenet --out docs/from_imagenet --work-dir work_dirs/from_imagenet

experiment-from-cifar: data ## start the quickstart's detector from a classifier of CIFAR-10 (data/cifar10), into docs/from_cifar10
	$(PY) -m studies.from_cifar10 --out docs/from_cifar10 --work-dir work_dirs/from_cifar10

experiment-variants: env ## train variants of SN (groups of ratios, LSTM, video), three seeds each, into docs/variants
	$(PY) -m studies.variants --out docs/variants

experiment-batch-average: env ## compare batch average and moving averages over the trainings of experiment-claims, into docs/batch_average
	$(PY) -m studies.batch_average --out docs/batch_average --work-dir work_dirs/claims

experiment-sparse: env ## make the classifiers of experiment-claims sparse and fine-tune them, into docs/sparse
	$(PY) -m studies.sparse --out docs/sparse --work-dir work_dirs/claims

experiment-claims: env ## train norms on CIFAR-10 (data/cifar10) over few and many images per GPU, into docs/claims
	$(PY) -m studies.claims --out docs/claims --work-dir work_dirs/claims

experiment-longer-detection: data ## train the quickstart's detector three times as long with SN, GN and BN, into docs/longer_detection
	$(PY) -m studies.longer_detection --out docs/longer_detection --work-dir work_dirs/longer_detection

experiment-geometry: env ## check Remark 1 of the paper, into docs/geometry
	$(PY) -m studies.geometry --out docs/geometry

experiment-style: env ## train stylization networks with IN, BN and SN on photographs (data/raccoon), into docs/style
	$(PY) -m studies.style data/raccoon/images --out docs/style --work-dir work_dirs/style

experiment-released-detectors: env ## count the authors' detections that MMDetection's parts find again, into docs/released_detectors
	$(PY) -m studies.released_detectors --out docs/released_detectors

experiment-soak: data ## train the quickstart's detector for two hours and watch its process, into docs/soak
	$(PY) -m studies.soak --out docs/soak --work-dir work_dirs/soak

bad-inputs: env ## make mistakes in configs and data, and say how our tools end, into docs/bad_inputs
	OMP_NUM_THREADS=1 $(PY) -W ignore -m studies.bad_inputs --out docs/bad_inputs

zoo: env ## build every config of the toolboxes with SN, train a sample for a step, into docs/zoo
	OMP_NUM_THREADS=1 $(PY) -m studies.zoo --out docs/zoo

lint: env ## check code style, format, spelling and types
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m codespell_lib
	$(VENV)/bin/shellcheck tools/*.sh
	$(PY) -m mypy

format: env ## fix code style and format
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

docs: env ## build the site in site/; a broken link or reference is an error
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict

docs-serve: env ## show the site on this machine, rebuilt when a page changes
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs serve

dist: env ## build the sdist and the wheel in dist/
	$(PY) -m build --no-isolation
