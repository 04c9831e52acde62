"""Weights that do not fit are refused with advice that works; weights that fit are loaded."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from mmengine.config import Config
from mmengine.model import BaseModule, BaseTTAModel, MMDistributedDataParallel
from mmengine.runner.checkpoint import load_checkpoint
from torch import nn

from sn_openmmlab import convert_batch_norm
from sn_openmmlab.errors import UsageError
from sn_openmmlab.layers.switch_norm import SwitchNorm
from sn_openmmlab.runs.weights.check import check_resume, check_start, check_trained

BN = nn.BatchNorm2d
INSTEAD = re.compile(r'(?:write|by) model\.?([\w.]*)\.init_cfg=(dict\(.*?\))')


def config(**settings: object) -> Config:
    """Return what the check needs of the config of a run."""
    return Config(dict(model=dict(), **settings))


def pretrained(module: nn.Module, file: str, kind: str = 'Pretrained', **more: object) -> None:
    module.init_cfg = dict(type=kind, checkpoint=file, **more)


def refusal(model: nn.Module, **settings: object) -> str:
    """Return the sentence that refuses a start; the model stays unchanged."""
    before = {name: value.clone() for name, value in model.state_dict().items()}
    with pytest.raises(UsageError) as caught:
        check_start(model, config(**settings))
    assert '\n' not in str(caught.value)
    assert all(torch.equal(model.state_dict()[name], value) for name, value in before.items())
    return str(caught.value)


def follow(said: str, model: nn.Module) -> None:
    """Follow the advice of a sentence: set the init_cfg that it names."""
    place, init = INSTEAD.search(said).groups()
    model.get_submodule(place).init_cfg = eval(init)


def filled_by(model: nn.Module, load_from: str | None = None) -> list[str]:
    """Initialize a model as mmengine does; return the weights of SN layers that this sets."""
    norms = {n: m for n, m in model.named_modules() if isinstance(m, SwitchNorm)}
    for layer in norms.values():
        for tensor in (*layer.parameters(), layer.running_mean, layer.running_var):
            nn.init.constant_(tensor, torch.nan)
    model.init_weights()
    if load_from:
        load_checkpoint(model, load_from, logger='silent')
    own = [f'{n}.{part}' for n, layer in norms.items() for part in layer.state_dict()]
    return [name for name in own if not model.state_dict()[name].isnan().any()]


def assert_started(model: nn.Module, load_from: str | None = None) -> None:
    """Check that a start is allowed and fills every SN layer."""
    check_start(model, config(load_from=load_from))
    norms = [m for m in model.modules() if isinstance(m, SwitchNorm)]
    assert len(filled_by(model, load_from)) == 7 * len(norms)


def test_own_weights_start(detector: type, save: Callable, log: pytest.LogCaptureFixture) -> None:
    file = save(detector())
    assert_started(detector(), file)
    says = f'{file} starts the model: it fills 3 of 3 SN layers and 4 of 4 convolutions and linear'
    assert says in log.text


def test_frozen_layers_that_nothing_fills_are_warned_of(
    detector: type, save: Callable, log: pytest.LogCaptureFixture
) -> None:
    def frozen() -> nn.Module:
        model = detector()
        model.backbone.requires_grad_(False)
        return model

    file = save(detector())
    check_start(frozen(), config(load_from=file))
    assert 'frozen at their' not in log.text
    check_start(frozen(), config())
    assert 'since no file fills them: backbone.sn1, backbone.downsample.1. To train' in log.text
    assert [r.levelname for r in log.records if 'frozen at their' in r.getMessage()] == ['WARNING']


def test_those_of_other_classes_start_and_their_last_layers_are_named(
    detector: type, save: Callable, log: pytest.LogCaptureFixture
) -> None:
    assert_started(detector(classes=5), save(detector(classes=2)))
    assert '3 of 4 convolutions and linear layers; not head.fc_cls (another shape).' in log.text


def test_norms_that_are_no_sn_are_counted_too(
    detector: type, save: Callable, log: pytest.LogCaptureFixture
) -> None:
    mixed = detector(BN, head_norm=SwitchNorm)
    assert_started(detector(BN, head_norm=SwitchNorm), save(mixed))
    assert 'it fills 1 of 1 SN layers, 2 of 2 other norms and 4 of 4 convolutions' in log.text
    check_start(detector(BN), config(load_from=save(detector(BN))))
    check_start(detector(nn.Identity), config(load_from=save(detector(nn.Identity))))


@pytest.mark.parametrize('kind', ['Pretrained', 'SNPretrained'])
def test_own_weights_start_a_part(kind: str, detector: type, save: Callable) -> None:
    whole, part = save(detector(), 'whole.pth'), save(detector().backbone, 'part.pth')
    for cfg in (
        dict(type=kind, checkpoint=part),
        dict(type=kind, checkpoint=whole, prefix='backbone.'),
        [dict(type='Kaiming', layer='Conv2d'), dict(type=kind, checkpoint=part)],
    ):
        model = detector()
        del model.head
        model.backbone.init_cfg = cfg
        assert_started(model)


def _whole(model: nn.Module, file: str) -> dict:
    return dict(load_from=file)


def _backbone(model: nn.Module, file: str) -> dict:
    del model.head
    pretrained(model.backbone, file)
    return {}


def _backbone_by_list(model: nn.Module, file: str) -> dict:
    settings = _backbone(model, file)
    model.backbone.init_cfg = [dict(type='Kaiming', layer='Conv2d'), model.backbone.init_cfg]
    return settings


def _backbone_by_prefix(model: nn.Module, file: str) -> dict:
    settings = _backbone(model, file)
    model.backbone.init_cfg['prefix'] = 'backbone.'
    return settings


def _authors(model: nn.Module) -> nn.Module:
    """Return the module with γ and β in the shape of the authors' layers."""
    for layer in model.modules():
        if isinstance(layer, SwitchNorm):
            for name in ('weight', 'bias'):
                setattr(layer, name, nn.Parameter(torch.ones(1, layer.num_features, 1, 1)))
    return model


@pytest.mark.parametrize(
    ('source', 'way', 'words'),
    [
        (
            lambda d: d(BN),
            _whole,
            r'BatchNorm where .*\(3 of 3 layers, such as backbone.bn1 for backbone',
        ),
        (lambda d: d(BN).backbone, _backbone, r'BatchNorm .*\(2 of 2 layers, such as bn1 for sn1'),
        (lambda d: d(BN).backbone, _backbone_by_list, r'BatchNorm .*\(2 of 2 layers'),
        (lambda d: d(BN), _backbone_by_prefix, r'BatchNorm .*\(2 of 2 layers'),
        (lambda d: d(BN), _backbone, r"lie under 'backbone\.'"),
        (lambda d: d(), _backbone, r"lie under 'backbone\.'"),
        (lambda d: nn.ModuleDict({'net': d()}), _whole, r"lie under 'net\.'"),
    ],
    ids=['bn', 'bn_part', 'bn_list', 'bn_prefix', 'bn_under', 'under', 'whole_under'],
)
def test_what_the_sentence_says_to_write_starts_all_of_it(
    source: Callable, way: Callable, words: str, detector: type, save: Callable
) -> None:
    model, file = detector(), save(source(detector))
    settings = way(model, file)
    said = refusal(model, **settings)
    assert re.search(
        rf'{re.escape(file)} cannot start (the model|model\.backbone): .*{words}', said
    )
    assert said.endswith('in place of load_from, which converts it.') == (
        words.endswith('backbone')
    )
    follow(said, model)
    assert_started(model)


@pytest.mark.parametrize('norm', [SwitchNorm, BN])
def test_bare_backbone_is_named_where_it_belongs(
    norm: type[nn.Module], detector: type, save: Callable
) -> None:
    model, file = detector(), save(detector(norm).backbone)
    said = refusal(model, load_from=file)
    assert 'it holds only backbone: write model.backbone.init_cfg=dict(type=' in said
    follow(said, model)
    check_start(model, config())
    assert len([name for name in filled_by(model) if name.startswith('backbone')]) == 2 * 7


@pytest.mark.parametrize('norm', [SwitchNorm, BN])
def test_parts_of_another_network_can_be_started_one_by_one(
    norm: type[nn.Module], detector: type, save: Callable
) -> None:
    model, file = detector(), save(detector(norm, head_norm=nn.Identity))
    said = refusal(model, load_from=file)
    lacks = (
        'lacks 1 of the 3 SN layers, such as head.sn'
        if norm is SwitchNorm
        else 'for 1 others, such as he'
    )
    assert lacks in said
    assert (
        'start the parts that it fits one by one, for example by model.backbone.init_cfg=dict('
        in said
    )
    assert "prefix='backbone.'" in said
    follow(said, model)
    check_start(model, config())
    assert len([name for name in filled_by(model) if name.startswith('backbone')]) == 2 * 7


@pytest.mark.parametrize('norm', [SwitchNorm, BN])
def test_weights_of_another_network_start_nothing(
    norm: type[nn.Module], detector: type, save: Callable
) -> None:
    file = save(nn.ModuleDict({'other': nn.Linear(2, 3)}))
    said = refusal(detector(norm), load_from=file)
    assert re.search(r'holds none of (the|its) weights.*: name a file of this network\.$', said)
    model = detector(norm)
    pretrained(model.backbone, file)
    assert 'cannot start model.backbone: it holds none of ' in refusal(model)


def test_weights_in_the_layout_of_the_authors_are_converted_first(
    detector: type, save: Callable
) -> None:
    file = save(_authors(detector()))
    said = refusal(detector(), load_from=file)
    assert 'it has the layout of the authors: convert it first, by python tools/convert_c' in said
    spaced = Path(file).rename(Path(file).with_name("the user's file.pth"))
    command = (
        refusal(detector(), load_from=str(spaced)).partition('by python ')[2].partition(' OUT')[0]
    )
    assert shlex.split(command) == ['tools/convert_checkpoint.py', str(spaced)]
    model = detector()
    pretrained(model.backbone, save(_authors(detector()).backbone))
    assert "write model.backbone.init_cfg=dict(type='SNPretrained'" in refusal(model)


@pytest.mark.parametrize('norm', [BN, nn.GroupNorm])
def test_sn_does_not_start_other_norms(
    norm: type[nn.Module], detector: type, save: Callable
) -> None:
    said = refusal(detector(norm), load_from=save(detector()))
    kind = norm.__name__
    abbr = {'BatchNorm2d': 'bn', 'GroupNorm': 'gn'}[kind]
    words = f'{kind} (3 layers, such as backbone.sn1 for backbone.{abbr}1): set norm_cfg=dict(type='
    assert f'it holds SN where the model has {words}' in said
    model = detector(norm)
    pretrained(model.backbone, save(detector().backbone))
    assert f'{kind} (2 layers, such as sn1 for {abbr}1)' in refusal(model)


def test_network_that_was_converted_starts_from_its_batch_norms_and_its_own(
    detector: type, save: Callable
) -> None:
    converted, file = convert_batch_norm(detector(BN)), save(detector(BN))
    said = refusal(converted, load_from=file)
    assert 'as backbone.bn1 for backbone.bn1): write model.init_cfg=dict(' in said
    follow(said, converted)
    assert_started(converted)
    assert_started(convert_batch_norm(detector(BN)), save(converted))


def test_weights_where_mmengine_does_not_look_are_named(
    detector: type, save: Callable, tmp_path: Path
) -> None:
    file = str(tmp_path / 'nested.pth')
    torch.save({'model': detector().state_dict()}, file)
    assert "lie under 'model', where MMEngine does not look" in refusal(detector(), load_from=file)
    model = detector(init_cfg=dict(type='SNPretrained', checkpoint=file))
    assert_started(model)


def test_missing_file_and_prefix_are_named(detector: type, save: Callable, tmp_path: Path) -> None:
    model = detector()
    pretrained(model.backbone, f'{tmp_path}/absent.pth')
    assert f'there is no checkpoint file {tmp_path}/absent.pth' in refusal(model)
    pretrained(model.backbone, save(detector()), prefix='bone')
    assert 'starts with bone.: their names are backbone.conv1.weight' in refusal(model)
    model.backbone.init_cfg = dict(type='SNPretrained')
    assert 'model.backbone.init_cfg has no checkpoint: name the file' in refusal(model)


@pytest.mark.parametrize('outer', ['load_from', 'model'])
def test_file_that_is_overwritten_is_not_asked(outer: str, detector: type, save: Callable) -> None:
    file = save(detector())
    model = detector()
    pretrained(model.backbone, save(detector(BN).backbone, 'bn.pth'))
    assert 'BatchNorm' in refusal(model)
    if outer == 'model':
        pretrained(model, file)
    assert_started(model, file if outer == 'load_from' else None)


def test_frozen_parts_start_too(detector: type, save: Callable) -> None:
    file = save(detector())
    model = detector()
    model.backbone.requires_grad_(False)
    assert_started(model, file)


@pytest.mark.parametrize(
    ('trained', 'built', 'words'),
    [
        (dict(scopes=('bn', 'in', 'ln')), {}, r"set scopes=\('bn', 'in', 'ln'\) in its norm_cfg"),
        (dict(scopes=('in', 'ln')), {}, r"set scopes=\('in', 'ln'\) in its norm_cfg"),
        ({}, dict(correction=1), 'set correction=0 in its norm_cfg'),
        (
            dict(scopes=('gn', 'bn'), num_groups=2),
            dict(scopes=('gn', 'bn'), num_groups=4),
            'set num_groups=2 in its norm_cfg',
        ),
    ],
    ids=['order', 'number', 'correction', 'groups'],
)
@pytest.mark.parametrize('known', ['layers', 'config'])
def test_other_settings_than_those_of_the_training_are_refused(
    known: str, trained: dict, built: dict, words: str, detector: type, save: Callable
) -> None:
    norm_cfg = dict(type='SN', **trained)
    text = Config(
        dict(norm_cfg=dict(type='SN', **built), model=dict(norm_cfg=norm_cfg))
    ).pretty_text
    file = save(detector(**trained), meta=dict(cfg=text))
    if known == 'config':
        checkpoint = torch.load(file, weights_only=True)
        torch.save({**checkpoint, 'state_dict': dict(checkpoint['state_dict'])}, file)
    refused = refusal(detector(**built), load_from=file)
    assert re.search(rf'cannot start the model: .*backbone\.sn1 was trained .*{words}', refused)
    model = detector(**built)
    pretrained(model.backbone, file, prefix='backbone.')
    assert re.search(words, refusal(model))
    pretrained(model.backbone, file, 'SNPretrained')
    assert re.search(words, refusal(model))
    for check in (check_trained, check_resume):
        with pytest.raises(UsageError, match=words):
            check(detector(**built), file)
        check(detector(**trained), file)


@pytest.mark.parametrize('kind', ['load_from', 'Pretrained', 'SNPretrained', 'test'])
def test_weights_of_the_authors_without_their_correction_are_warned_of(
    kind: str, detector: type, save: Callable, log: pytest.LogCaptureFixture
) -> None:
    meta = dict(converter='sn_openmmlab', layout='imagenet', scopes=['in', 'ln', 'bn'])
    file = save(detector(), meta=meta)
    state = torch.load(file, weights_only=True)['state_dict']
    torch.save({'state_dict': dict(state), 'meta': meta}, file)
    for correction, warned in ((1, False), (0, True)):
        log.clear()
        model = detector(correction=correction)
        if kind == 'test':
            check_trained(model, file)
        elif kind == 'load_from':
            check_start(model, config(load_from=file))
        else:
            pretrained(model, file, kind)
            check_start(model, config())
        assert (
            '3 SN layers that get them have correction=0, such as backbone.sn1' in log.text
        ) == warned


def test_resume_holds_exactly(detector: type, save: Callable) -> None:
    check_resume(detector(), save(detector()))
    check_resume(detector(BN), save(detector(BN)))
    faults = {
        detector(BN): 'BatchNorm where the model has SN',
        detector(classes=5): r'the shape \(5, 4\), not \(2, 4\), of head\.fc_cls\.weight',
        detector(head_norm=nn.Identity): r'it lacks 1 of the 3 SN layers, such as head\.sn',
        nn.ModuleDict({'net': detector()}): 'lie under',
    }
    more = detector()
    more.head.mask = nn.Linear(2, 2)
    faults[more] = (
        r'it also has head\.mask\.weight, head\.mask\.bias: give the config .* start a new'
    )
    less = detector()
    del less.head.fc_cls
    faults[less] = r'it has no head\.fc_cls\.weight, head\.fc_cls\.bias: give the config that'
    for source, words in faults.items():
        file = save(source)
        with pytest.raises(UsageError, match=rf'cannot be continued by this config: .*{words}'):
            check_start(detector(), config(resume=True, load_from=file))


def test_average_beside_the_weights_is_none_of_the_models(detector: type, save: Callable) -> None:
    average = {f'module.{name}': value for name, value in detector().state_dict().items()}
    file = save(detector(), ema_state_dict={**average, 'steps': torch.tensor(3)})
    check_resume(detector(), file)
    check_trained(detector(), file)
    assert_started(detector(), file)


def test_resume_asks_nothing_of_what_it_overwrites(detector: type, save: Callable) -> None:
    model = detector()
    pretrained(model.backbone, save(detector(BN).backbone, 'bn.pth'))
    check_start(model, config(resume=True, load_from=save(detector())))


@pytest.mark.parametrize(
    ('source', 'words'),
    [
        (lambda d: d(BN), 'BatchNorm where the model has SN .*: give the config that it was'),
        (lambda d: d(classes=5), r'shape \(5, 4\), not \(2, 4\), of head\.fc_cls\.weight.*: give'),
        (lambda d: d().backbone, 'it holds only backbone: give the config'),
        (lambda d: _authors(d()), 'layout of the authors: convert it first, by python tools/con'),
        (lambda d: nn.Linear(2, 2), 'it holds none of the weights of this model'),
    ],
    ids=['bn', 'classes', 'part', 'authors', 'other'],
)
def test_weights_that_were_not_trained_are_not_evaluated(
    source: Callable, words: str, detector: type, save: Callable
) -> None:
    file = save(source(detector))
    with pytest.raises(UsageError, match=f'{file} cannot be evaluated by this config: .*{words}'):
        check_trained(detector(), file)


def test_what_an_evaluation_lacks_is_said(
    detector: type, save: Callable, log: pytest.LogCaptureFixture
) -> None:
    lacking = detector()
    del lacking.head.fc_cls
    check_trained(detector(), save(lacking))
    assert 'fills 3 of 3 SN layers and 3 of 4 convolutions and linear layers; not' in log.text
    assert 'head.fc_cls (not in the file)' in log.text
    assert 'has no weights of head.fc_cls, which stay random' in log.text


def test_weights_that_are_not_finite_are_refused(detector: type, tmp_path: Path) -> None:
    state, file = detector().state_dict(), str(tmp_path / 'weights.pth')
    state['head.fc_cls.weight'][0] = float('nan')
    torch.save({'state_dict': state}, file)
    for check in (check_trained, check_resume):
        with pytest.raises(UsageError, match=r'NaN or infinite, such as head\.fc_cls\.weight'):
            check(detector(), file)


class Tta(BaseTTAModel):
    """Test-time augmentation like a toolbox's."""

    def merge_preds(self, data_samples_list: list) -> list:
        return []


class Augmentable(nn.Module):
    """A model with what test-time augmentation needs."""

    def test_step(self, data: object) -> list:
        return []


def _wrapped(model: nn.Module) -> nn.Module:
    augmentable = Augmentable()
    for name, child in model.named_children():
        augmentable.add_module(name, child)
    return Tta(module=augmentable)


def test_wrapped_models_and_names_of_parallel_training_are_understood(
    detector: type, save: Callable, tmp_path: Path
) -> None:
    file = save(detector())
    check_trained(_wrapped(detector()), file)
    state = torch.load(file, weights_only=True)['state_dict']
    torch.save({'state_dict': {f'module.{name}': state[name] for name in state}}, file)
    check_trained(_wrapped(detector()), file)
    assert_started(detector(), file)
    with pytest.raises(UsageError, match='BatchNorm'):
        check_trained(_wrapped(detector()), save(detector(BN)))

    torch.distributed.init_process_group(
        'gloo', init_method=f'file://{tmp_path}/store', rank=0, world_size=1
    )
    try:
        parallel = MMDistributedDataParallel(detector(), device_ids=None)
        check_start(parallel, config(load_from=save(detector())))
        assert 'BatchNorm' in refusal(parallel, load_from=save(detector(BN)))
    finally:
        torch.distributed.destroy_process_group()


def test_model_that_is_not_built_yet_is_built_for_the_check(save: Callable, detector: type) -> None:
    with pytest.raises(UsageError, match='BatchNorm'):
        check_start(
            dict(type=detector),
            Config(dict(model=dict(type=detector), load_from=save(detector(BN)))),
        )


class OwnCode(BaseModule):
    """Loads with its own code, like MMSegmentation's PIDNet: only a file of bare weights."""

    def __init__(self, norm: type[nn.Module], init_cfg: dict | None = None) -> None:
        super().__init__(init_cfg)
        self.conv = nn.Conv2d(3, 4, 1)
        self.norm = norm(4)

    def init_weights(self) -> None:
        if self.init_cfg:
            weights = torch.load(self.init_cfg['checkpoint'], weights_only=True)
            self.load_state_dict(weights, strict=False)


@pytest.mark.parametrize('kind', ['Pretrained', 'SNPretrained'])
def test_class_that_loads_by_its_own_code_is_held_to_the_same(
    kind: str, save: Callable, tmp_path: Path
) -> None:
    def model(file: str) -> nn.Module:
        return nn.ModuleDict({'net': OwnCode(SwitchNorm, dict(type=kind, checkpoint=file))})

    said = refusal(model(save(OwnCode(BN))))
    assert 'where the model has SN (1 of 1 layers, such as norm for norm): convert it first' in said
    nested = save(OwnCode(SwitchNorm))
    said = refusal(model(nested))
    assert 'OwnCode loads with its own code, which leaves 1 SN layers unchanged, such as' in said
    bare = str(tmp_path / 'bare.pth')
    torch.save(torch.load(nested, weights_only=True)['state_dict'], bare)
    assert_started(BaseModuleOf(model(bare)))


class BaseModuleOf(BaseModule):
    """Passes the initialization on to its part."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.net = inner['net']


class Renames(OwnCode):
    """Has no SN and renames what it loads, so that any file may fit."""


def test_class_without_sn_may_rename_what_it_loads(tmp_path: Path) -> None:
    file = str(tmp_path / 'foreign.pth')
    torch.save({'model': {'blocks.0.weight': torch.ones(2)}}, file)
    check_start(
        nn.ModuleDict({'net': Renames(BN, dict(type='Pretrained', checkpoint=file))}), config()
    )


class Student(BaseModule):
    """Renames what it loads, like MMDetection's semi-supervised detectors."""

    def __init__(self, student: nn.Module) -> None:
        super().__init__()
        self.student = student

    def _load_from_state_dict(self, state: dict, prefix: str, *args: object) -> None:
        for name in list(state):
            state[f'student.{name}'] = state.pop(name)
        super()._load_from_state_dict(state, prefix, *args)


def test_model_that_renames_what_it_loads_is_held_to_the_same(
    detector: type, save: Callable
) -> None:
    text = "model = dict(detector=dict(norm_cfg=dict(type='SN')))"
    file = save(detector(), meta=dict(cfg=text))
    assert_started(Student(detector()), file)
    said = refusal(Student(detector(correction=1)), load_from=file)
    assert 'student.backbone.sn1 was trained with correction=0' in said
    said = refusal(Student(detector()), load_from=save(detector(BN)))
    assert 'it holds only student: write model.detector.init_cfg=dict(type=' in said


class Distilled(BaseModule):
    """Has a teacher that is no submodule, as in MMDetection's distillations."""

    def __init__(self, teacher: nn.Module) -> None:
        super().__init__()
        object.__setattr__(self, 'teacher_model', teacher)


def test_teacher_is_held_to_the_same(detector: type, save: Callable) -> None:
    def check(file: str) -> None:
        settings = config()
        settings.model.teacher_ckpt = file
        check_start(Distilled(detector()), settings)

    check(save(detector()))
    with pytest.raises(UsageError, match=r'cannot start model\.teacher_ckpt: .* convert it first'):
        check(save(detector(BN)))
