"""torch.distributed.run: start a script in several processes of this machine, as torchrun does.

    python -m mindtorch_v2.distributed.run --nproc-per-node 2 script.py [arguments]

Each process gets RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. If one fails, the others are ended.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Sequence

__all__ = ["get_args_parser", "main", "parse_args", "run"]


def get_args_parser() -> argparse.ArgumentParser:
    """The parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="torchrun", description="Start a script in several processes of this machine."
    )
    parser.add_argument(
        "--nproc-per-node", "--nproc_per_node", type=int, default=1, help="number of processes"
    )
    parser.add_argument("--nnodes", default="1", help="number of machines")
    parser.add_argument("--node-rank", "--node_rank", type=int, default=0, help="this machine's number")
    parser.add_argument(
        "--master-addr", "--master_addr", default="127.0.0.1", help="address of the first machine"
    )
    parser.add_argument(
        "--master-port", "--master_port", type=int, default=0, help="port of the store; 0: any free one"
    )
    parser.add_argument("--standalone", action="store_true", help="one machine, any free port")
    parser.add_argument("-m", "--module", action="store_true", help="the script is the name of a module")
    parser.add_argument(
        "--no-python", "--no_python", action="store_true", help="the script is a program of its own"
    )
    parser.add_argument("training_script", help="the script")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER, help="its arguments")
    return parser


def parse_args(args: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    return get_args_parser().parse_args(args)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def run(args: argparse.Namespace) -> None:
    """Start the processes and wait for them; exits with the code of the first that fails."""
    n_local, n_nodes = args.nproc_per_node, int(str(args.nnodes).partition(":")[0])
    if n_nodes > 1 and not args.master_port:
        raise SystemExit("torchrun: with several machines, --master-port must be the same number on each")
    port = args.master_port or _free_port()
    command = [] if args.no_python else [sys.executable, "-u"]
    command += [*(["-m"] if args.module else []), args.training_script, *args.training_script_args]
    run_id = os.environ.get("TORCHELASTIC_RUN_ID", uuid.uuid4().hex)
    processes = []
    for local_rank in range(n_local):
        environment = {
            **os.environ,
            "RANK": str(args.node_rank * n_local + local_rank),
            "LOCAL_RANK": str(local_rank),
            "GROUP_RANK": str(args.node_rank),
            "WORLD_SIZE": str(n_nodes * n_local),
            "LOCAL_WORLD_SIZE": str(n_local),
            "MASTER_ADDR": args.master_addr,
            "MASTER_PORT": str(port),
            "TORCHELASTIC_RUN_ID": run_id,
        }
        environment.setdefault("OMP_NUM_THREADS", "1")
        processes.append(subprocess.Popen(command, env=environment))  # noqa: S603  (the user's own command)
    code = _wait(processes)
    if code:
        raise SystemExit(code)


def _wait(processes: list[subprocess.Popen[bytes]]) -> int:
    """Wait for all; at the first failure end the others. The exit code."""
    try:
        while True:
            codes = [process.poll() for process in processes]
            failed = [code for code in codes if code]
            if failed:
                rank = codes.index(failed[0])
                print(f"torchrun: local rank {rank} failed with exit code {failed[0]}", file=sys.stderr)  # noqa: T201
                return abs(failed[0])
            if all(code == 0 for code in codes):
                return 0
            time.sleep(0.05)
    finally:
        for process in processes:
            if process.poll() is None:
                process.terminate()
        for process in processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


def main(args: Sequence[str] | None = None) -> None:
    """The command `torchrun`."""
    run(parse_args(args))


if __name__ == "__main__":
    main()
