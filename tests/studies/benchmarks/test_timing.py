"""Functions take turns, and the peak memory of a known call is measured."""

import torch

from studies.benchmarks.memory import peak_bytes
from studies.benchmarks.timing import calls_per_turn, threads_for, time_in_turns

CPU = torch.device('cpu')


def test_the_functions_take_turns():
    calls = []
    functions = {name: lambda name=name: calls.append(name) for name in 'ab'}

    times = time_in_turns(functions, 2, CPU, calls=3)

    assert calls == (['a'] * 4 + ['b'] * 4) * 2
    assert set(times) == {'a', 'b'}
    for rounds in times.values():
        assert len(rounds) == 2 and min(rounds) >= 0


def test_small_inputs_get_more_calls():
    assert [calls_per_turn(elements) for elements in (1, 10**4, 10**5, 10**6, 10**8)] == [
        100,
        100,
        10,
        2,
        2,
    ]


def test_small_inputs_get_one_thread(monkeypatch):
    threads = [3]
    monkeypatch.setattr(torch, 'get_num_threads', lambda: threads[-1])
    monkeypatch.setattr(torch, 'set_num_threads', threads.append)
    for elements, inside in ((10**5 - 1, 1), (10**5, 3)):
        with threads_for(elements):
            assert threads[-1] == inside
        assert threads[-1] == 3


def test_peak_is_the_most_memory_held_at_a_time():
    size = 4 * 10**6

    def run():
        first = torch.zeros(10**6)
        second = first + 1
        del first
        return second * 2

    # Two at a time, though three are made; allocators may round up.
    assert 2 * size <= peak_bytes(run, CPU) < 2.1 * size
