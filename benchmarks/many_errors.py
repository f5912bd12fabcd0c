"""Statistics of many results of a unit against exact sums, on the workers of a cluster.

    python benchmarks/many_errors.py --outputs 10000000000 --cluster local --jobs 2

The figures are the same whatever the workers are (`mmaformal.errors`).
"""

from __future__ import annotations

import argparse
import resource
import sys
import time

from mmaformal.architectures.meant import instruction_meant
from mmaformal.executors import width_of, workers
from mmaformal.queries.errors import errors


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--instruction", default="hopper HMMA.16816.F32")
    parser.add_argument("--outputs", type=int, default=10**8)
    parser.add_argument("--k", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cluster", metavar="ADDRESS", help="a Dask scheduler, or `local`")
    parser.add_argument("--jobs", type=int)
    args = parser.parse_args()
    start = time.perf_counter()
    with workers(args.cluster, args.jobs) as executor:
        width = width_of(executor)

        def told(line: str) -> None:
            print(f"\r{line}, {time.perf_counter() - start:.0f} s ", end="", file=sys.stderr, flush=True)

        found = errors(
            instruction_meant(args.instruction),
            args.outputs,
            k=args.k,
            seed=args.seed,
            executor=executor,
            progress=told,
        )
    print(f"\n{args.instruction}, {width} workers, {time.perf_counter() - start:.0f} s")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"processor time of the workers: {used.ru_utime + used.ru_stime:.0f} s")
    for name, value in vars(found).items():
        print(f"{name:27}{value!r}")


if __name__ == "__main__":
    main()
