"""What a running process and its children use of the machine."""

from dataclasses import dataclass

import psutil


@dataclass(frozen=True)
class Usage:
    """What a process and its children use.

    Attributes:
        pss: memory in bytes of all of them; each has its share of the pages that several hold.
        rss: resident memory in bytes of the process alone.
        files: open files and sockets of all of them.
        threads: of all of them.
        cpu: seconds that all of them have used since they began, and their ended children too.
    """

    pss: int
    rss: int
    files: int
    threads: int
    cpu: float


def usage(pid: int) -> Usage | None:
    """Return what a process uses, or None if it has ended.

    A child that ends while it is looked at is left out.
    """
    try:
        root = psutil.Process(pid)
        memory, own = root.memory_full_info(), _counts(root)
        children = root.children(recursive=True)
    except psutil.Error:
        return None
    counts, shares = [own], [memory.pss]
    for child in children:
        try:
            shares.append(child.memory_full_info().pss)
            counts.append(_counts(child))
        except psutil.Error:
            pass
    files, threads, cpu = map(sum, zip(*counts, strict=True))
    return Usage(sum(shares), memory.rss, files, threads, cpu)


def _counts(process: psutil.Process) -> tuple[int, int, float]:
    with process.oneshot():
        times = process.cpu_times()
        cpu = times.user + times.system + times.children_user + times.children_system
        return process.num_fds(), process.num_threads(), cpu
