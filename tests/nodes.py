"""Writes the logs of launches on several nodes; every line is written here, after what the programs print."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from typing import NamedTuple

START = datetime(2026, 1, 12, 10, 0, 0)
LOADING = '  File "/a/sglang/srt/model_loader/loader.py", line 9, in load_weights'
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. "
    "GPU {gpu} has a total capacity of 80.00 GiB"
)
GLOO = (
    "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:534] "
    "Connection closed by peer [10.0.0.{node}]:41721"
)
LOST = (
    "torch.distributed.DistBackendError: NCCL error in: /pytorch/ProcessGroupNCCL.cpp:3356, ncclRemoteError: "
    "A call failed possibly due to a network error or a remote process exiting prematurely."
)
WATCHDOG = (
    "[rank{rank}]:[E112 10:20:31.114 ProcessGroupNCCL.cpp:682] [Rank {rank}] Watchdog caught collective operation "
    "timeout: WorkNCCL(SeqNum=8841, OpType=ALLREDUCE, NumelIn=4096, NumelOut=4096, Timeout(ms)=600000) ran for 600022 "
    "milliseconds before timing out."
)
SIGQUIT = "Received sigquit from a child process. It usually means the child failed."
MISSING = (
    "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. {there}/{all} clients joined."
)


class Launch(NamedTuple):
    """A launch on several nodes, each with as many GPUs."""

    nodes: int
    gpus: int = 8
    more: str = ""

    def ranks(self, node: int) -> range:
        """The ranks that run on a node."""
        return range(node * self.gpus, (node + 1) * self.gpus)


class Log:
    """The log of one node, whose clock is `ahead` by some seconds; without `stamps` its lines have no times."""

    def __init__(self, launch: Launch, node: int, ahead: float = 0.0, *, stamps: bool = True) -> None:
        self.launch = launch
        self.node = node
        self.rows: list[str] = []
        self._ahead = ahead
        self._stamps = stamps

    @property
    def text(self) -> str:
        """The log."""
        return "".join(row + "\n" for row in self.rows)

    def say(self, at: float, text: str, rank: int | None = None) -> Log:
        """Print a line, `at` seconds after the start."""
        tag = "" if rank is None else f" TP{rank}"
        moment = START + timedelta(seconds=at + self._ahead)
        stamp = f"[{moment:%Y-%m-%d %H:%M:%S}{tag}] " if self._stamps else ""
        self.rows.append(f"{stamp}{text}")
        return self

    def all_say(self, at: float, text: str) -> Log:
        """Print a line on every rank."""
        for rank in self.launch.ranks(self.node):
            self.say(at, text, rank)
        return self

    def crash(self, at: float, rank: int, *rows: str) -> Log:
        """Print the traceback of a scheduler, which ends with the given rows."""
        self.say(at, "Scheduler hit an exception: Traceback (most recent call last):", rank)
        self.rows += ['  File "/a/sglang/srt/managers/scheduler.py", line 3, in run_scheduler_process', *rows, ""]
        return self

    def end(self, at: float) -> Log:
        """Print what SGLang prints when it ends itself, and what the shell says of that."""
        self.say(at, SIGQUIT)
        self.rows.append("Killed")
        return self

    def start(self, until: str = "serving") -> Log:
        """Print a start up to a stage (the last line that is printed is that which opens it)."""
        launch = self.launch
        args = f"model_path='/models/m', tp_size={launch.nodes * launch.gpus}, dist_init_addr='10.0.0.1:20000'"
        self.say(2, f"server_args=ServerArgs({args}, nnodes={launch.nodes}, node_rank={self.node}{launch.more})")
        if until == "args":
            return self
        self.all_say(11 + self.node % 5, "Init torch distributed begin.")
        if until == "init":
            return self
        self.all_say(20, "Init torch distributed ends. mem usage=0.50 GB")
        self.all_say(20, "Load weight begin. avail mem=78.00 GB")
        if until == "weight-load":
            return self
        self.all_say(
            50 + self.node, "Load weight end. type=M, dtype=torch.bfloat16, avail mem=40.00 GB, mem usage=38.00 GB."
        )
        self.all_say(80, "Memory pool end. avail mem=8.00 GB")
        if until == "kv-cache":
            return self
        self.all_say(81, "Capture cuda graph begin. This can take up to several minutes. avail mem=8.00 GB")
        if until == "cuda-graph":
            return self
        self.say(120, "max_total_num_tokens=655120, chunked_prefill_size=8192", self.launch.ranks(self.node)[0])
        if self.node == 0 and until == "serving":
            self.say(125, "The server is fired up and ready to roll!")
            self.say(140, 'INFO:     127.0.0.1:5000 - "POST /generate HTTP/1.1" 200 OK')
        return self


def incident(*, stamps: bool = True) -> dict[str, Log]:
    """Sixteen nodes whose clocks differ: rank 3 of node 11 has no memory left, the others lose it, node 5 is silent."""
    launch = Launch(16)
    logs = {}
    for node in range(16):
        ahead = (-40, 0, 7, 0, 0, 12, 0, -3, 0, 0, 0, 25, 0, 1, 0, 40)[node]
        log = Log(launch, node, ahead, stamps=stamps)
        if node == 5:
            log.start("init").all_say(20, "Init torch distributed ends. mem usage=0.50 GB")
        elif node == 11:
            log.start("weight-load").crash(48, 91, LOADING, OOM.format(gpu=3)).end(49)
        else:
            rank = launch.ranks(node)[node % 8]
            log.start("weight-load").crash(50 + node % 4, rank, GLOO.format(node=11)).end(55)
        logs[f"node{node}.log"] = log
    return logs


def drawn(seed: int) -> tuple[dict[str, Log], int, int, str]:
    """Nodes whose number, clocks, cause and echoes depend on a seed; with the node, rank and label of the cause."""
    draw = random.Random(seed)  # noqa: S311 - no secret depends on it
    launch = Launch(draw.choice([2, 3, 4, 8]), gpus=draw.choice([1, 4, 8]))
    stage, at, rows, label = draw.choice(CAUSES)
    cause = draw.randrange(launch.nodes)
    rank = draw.choice(launch.ranks(cause))
    logs = {}
    for node in range(launch.nodes):
        ahead = draw.choice([0, 0, draw.randint(-40, 40), 3600]) + draw.choice([0, 0, 1, 2, -1])
        log = Log(launch, node, ahead).start(stage)
        first = launch.ranks(node)[0]
        echo = draw.choice(["gloo", "nccl", "time-out", "none"])
        if node == cause:
            log.crash(at, rank, *rows).end(at + 1)
        elif echo == "gloo":
            log.crash(at + draw.choice([-1, 0, 1, 3]), first, GLOO.format(node=cause)).end(at + 5)
        elif echo == "nccl":
            for other in launch.ranks(node):
                log.crash(at + draw.choice([-1, 0, 1, 3]), other, LOST)
            log.end(at + 5)
        elif echo == "time-out":
            log.say(at + 600, "still waiting", first)
            log.rows.append(WATCHDOG.format(rank=first))
            log.end(at + 603)
        logs[f"node{node}.log"] = log
    return logs, cause, rank, label


CRASH = "torch.AcceleratorError: CUDA error: an illegal memory access was encountered"
CAUSES = [
    ("init", 15, ["ModuleNotFoundError: No module named 'flashinfer'"], "missing-dependency"),
    ("weight-load", 48, [LOADING, OOM.format(gpu=0)], "oom-weight-load"),
    ("cuda-graph", 100, [CRASH], "kernel-crash"),
    ("serving", 200, [CRASH], "kernel-crash"),
]
