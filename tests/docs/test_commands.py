"""The commands of the pages exist, and their options are accepted."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

# Runs command lines given as JSON up to the point where their arguments are parsed.
PARSE = """
import argparse, contextlib, io, json, os, runpy, sys

class Parsed(Exception):
    pass

def parse_args(parser, args=None, namespace=None):
    options.update(o for o in parser._option_string_actions if o not in ('-h', '--help'))
    parse(parser, args, namespace)
    raise Parsed

parse, argparse.ArgumentParser.parse_args = argparse.ArgumentParser.parse_args, parse_args
sys.path[:0] = [os.getcwd(), os.path.join(os.getcwd(), 'tools')]
results = []
for program, arguments in json.loads(sys.argv[1]):
    options, said = set(), io.TextIOWrapper(io.BytesIO(), write_through=True)
    sys.argv = [program, *arguments]
    with contextlib.redirect_stderr(said):
        try:
            if program.endswith('.py'):
                runpy.run_path(program, run_name='__main__')
            else:
                runpy.run_module(program, run_name='__main__')
            outcome = 'its arguments were not parsed'
        except Parsed:
            outcome = ''
        except SystemExit as error:
            outcome = said.buffer.getvalue().decode() or f'exit code {error.code}'
    results.append([outcome, sorted(options)])
print('RESULTS' + json.dumps(results))
"""


class Call(NamedTuple):
    """A Python program of this repository, and its arguments."""

    program: str
    arguments: tuple[str, ...]


def words_of(command: str) -> list[str]:
    """Return the words of a command, without settings of the environment in front."""
    words = shlex.split(command, comments=True)
    while words and re.fullmatch(r'\w+=\S*', words[0]):
        words.pop(0)
    return words


def call_of(command: str) -> Call | None:
    """Return the tool or study that a command runs, if it runs one."""
    words = words_of(command)
    if not words or words[0] not in ('python', 'python3', 'torchrun'):
        return None
    for i, word in enumerate(words):
        if word.startswith('tools/') or (word.startswith('studies.') and words[i - 1] == '-m'):
            return Call(word, tuple(words[i + 1 :]))
    return None


@pytest.fixture(scope='module')
def parsed(
    repo: Path, tool_env: dict[str, str], all_commands: list[str]
) -> dict[Call, tuple[str, set[str]]]:
    """Return what each call said when it parsed its arguments, and its tool's options."""
    calls = sorted({call for command in all_commands if (call := call_of(command))})
    done = subprocess.run(
        [sys.executable, '-W', 'ignore', '-c', PARSE, json.dumps(calls)],
        cwd=repo,
        env=tool_env,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    results = json.loads(done.stdout.rpartition('RESULTS')[2])
    return {
        call: (said, set(options)) for call, (said, options) in zip(calls, results, strict=True)
    }


def test_command_is_accepted(command: str, repo: Path, parsed: dict) -> None:
    words = words_of(command)
    if not words:
        return
    if call := call_of(command):
        assert parsed[call][0] == ''
    if words[0] == 'make':
        makefile = (repo / 'Makefile').read_text()
        for target in words[1:]:
            assert '=' in target or re.search(f'^{target}:', makefile, re.MULTILINE), target
    if words[:2] == ['python', '-c']:
        compile(words[2], 'page', 'exec')
    for word in words:
        folder = word.partition('/')[0]
        if folder in ('configs', 'tools', 'studies', 'examples', '.ci') and '/' in word:
            # A name in capitals is the reader's to fill in.
            known = re.sub(r'/[A-Z_]+(\.py)?$', '', word)
            assert '$' in word or (repo / known).exists(), word


def test_extras_that_pip_installs_exist(all_commands: list[str], repo: Path) -> None:
    extras = re.findall(r'\.\[([\w,]+)\]', '\n'.join(all_commands))
    assert extras
    pyproject = (repo / 'pyproject.toml').read_text()
    for extra in ','.join(extras).split(','):
        assert re.search(rf'^{extra} = \[', pyproject, re.MULTILINE), extra


def test_reference_lists_all_options_of_the_tools(repo: Path, parsed: dict) -> None:
    tools = {call.program: options for call, (_, options) in parsed.items()}
    page = (repo / 'docs/reference/tools.md').read_text()
    sections = re.findall(r'^## `(tools/\S+)`\n(.*?)(?=^## )', page, re.MULTILINE | re.DOTALL)
    listed = {}
    for tool, section in sections:
        cells = [line.split('|')[1] for line in section.splitlines() if line.startswith('|')]
        listed[tool] = set(re.findall(r'(?<![\w-])--[a-z][\w-]+', ' '.join(cells)))
    assert listed == {tool: tools[tool] for tool in listed}
    public = {f'tools/{file.name}' for file in (repo / 'tools').glob('[!_]*.py')}
    assert set(listed) == public


def test_options_in_prose_exist(any_page: Path, parsed: dict) -> None:
    known = set().union(*(options for _, options in parsed.values()))
    for option in re.findall(r'`(--[\w-]+)', any_page.read_text()):
        assert option in known | {'--help'}
