"""Checkpoints that would call a function, by every opcode of pickle that can."""

from collections.abc import Iterator
from shlex import quote

from tests.hostile.pickles import FORMATS, call, checkpoint, name, text, tuple_of

# What code of an attacker would start with, and what torch and MMEngine offer to it.
FUNCTIONS = (
    'os.system',
    'posix.system',
    'nt.system',
    'os.popen',
    'os.remove',
    'os.execv',
    'builtins.eval',
    'builtins.exec',
    'builtins.open',
    'builtins.compile',
    'builtins.__import__',
    'builtins.getattr',
    'builtins.setattr',
    '__builtin__.eval',
    '__builtin__.apply',
    'subprocess.Popen',
    'subprocess.check_output',
    'commands.getoutput',
    'shutil.rmtree',
    'pathlib.Path',
    'pty.spawn',
    'runpy.run_path',
    'importlib.import_module',
    'imp.load_source',
    'socket.create_connection',
    'urllib.request.urlopen',
    'webbrowser.open',
    'code.interact',
    'timeit.timeit',
    'cProfile.run',
    'ctypes.CDLL',
    'functools.partial',
    'operator.methodcaller',
    'operator.attrgetter',
    'types.FunctionType',
    'marshal.loads',
    'pickle.loads',
    'copyreg._reconstructor',
    'numpy.load',
    'numpy.testing._private.utils.runstring',
    'torch.load',
    'torch.hub.load',
    'torch.jit.load',
    'torch.storage._load_from_bytes',
    'torch._utils._import_dotted_name',
    'torch.utils.cpp_extension.load_inline',
    'torch.ops.load_library',
    'torch.nn.modules.linear.Linear',
    'torch.serialization.load',
    'mmengine.config.Config.fromfile',
    'mmengine.fileio.load',
    'mmengine.registry.build_from_cfg',
    'mmengine.utils.get_installed_path',
    'mmengine.logging.history_buffer.HistoryBuffer.register_statistics',
)


def _stack_name(full: str) -> bytes:
    module, _, attribute = full.rpartition('.')
    return text(module) + text(attribute) + b'\x93'


def _ways(function: str, argument: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield each way to call a function with an argument: its name, and its opcodes."""
    module, _, attribute = function.rpartition('.')
    arguments = tuple_of(argument)
    yield 'REDUCE', call(function, argument)
    yield 'STACK_GLOBAL', _stack_name(function) + arguments + b'R'
    yield 'INST', b'(' + argument + f'i{module}\n{attribute}\n'.encode()
    yield 'OBJ', b'(' + name(function) + argument + b'o'
    yield 'NEWOBJ', name(function) + arguments + b'\x81'
    yield 'NEWOBJ_EX', name(function) + arguments + b'}\x92'
    yield 'BUILD', name(function) + argument + b'b'
    # As the method by which an object of an allowed class takes its state.
    state = b'}' + text('__setstate__') + name(function) + b's'
    buffer = name('mmengine.logging.history_buffer.HistoryBuffer') + b')\x81'
    yield 'SETSTATE', buffer + state + b'b' + argument + b'b'
    for opcode, code in (('EXT1', b'\x82\x01'), ('EXT2', b'\x83\1\0'), ('EXT4', b'\x84\1\0\0\0')):
        yield opcode, code + arguments + b'R'
    yield 'PERSID', f'P{function}\n'.encode()
    yield 'BINPERSID', tuple_of(text('storage'), name(function), argument) + b'Q'
    yield 'MODULE', tuple_of(text('module'), name(function), argument, argument) + b'Q'
    yield (
        'REBUILD',
        call(
            'torch._tensor._rebuild_from_type_v2', name(function), name(function), arguments, b'}'
        ),
    )
    yield 'HOOK', call('torch._utils._rebuild_parameter', argument, b'\x88', name(function))
    yield (
        'GETATTR',
        call(call('builtins.getattr', name(module), text(attribute)), argument)
        if ('.' in module)
        else call(call('builtins.getattr', name(f'{module}.{module}'), text(attribute)), argument),
    )


def calls(canary: str) -> Iterator[tuple[str, bytes]]:
    """Yield files, by name, that would make the file `canary` or read it.

    Each function and way comes in both formats and in two places of a checkpoint.
    """
    commands = {
        'builtins.eval': f'open({canary!r}, "w")',
        'builtins.exec': f'open({canary!r}, "w")',
    }
    for function in FUNCTIONS:
        argument = text(commands.get(function, f'touch {quote(canary)}'))
        if function == 'builtins.open':
            argument = text(canary) + text('w')
        for way, opcodes in _ways(function, argument):
            for kind, write in FORMATS.items():
                for place in ('weight', 'message_hub'):
                    title = f'{way} {function} {kind} {place}'
                    yield title, write(checkpoint(opcodes, place))
