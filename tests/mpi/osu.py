"""osu.py DIR NAME [KEY=NUMBER...]: runs an OSU-style demo of mpi4py with other numbers of rounds and sizes.

DIR is mpi4py's demo directory. NAME is one of its osu_NAME.py, or `allreduce`, which it lacks and which is measured here in
the same way. KEYs are those parameters of the demo's function that it has: skip, loop, MAX_MSG_SIZE and others.
"""

import inspect
import sys


def allreduce(skip=100, loop=1000, skip_large=2, loop_large=20, large_message_size=8192, MAX_MSG_SIZE=1 << 16):
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    if world.Get_rank() == 0:
        print("# MPI Allreduce Latency Test")
    size = 8
    while size <= MAX_MSG_SIZE:
        warm, rounds = (skip, loop) if size <= large_message_size else (skip_large, loop_large)
        mine, all_of_it = bytearray(size), bytearray(size)
        mine[0] = 1
        for turn in range(warm + rounds):
            if turn == warm:
                world.Barrier()
                begin = MPI.Wtime()
            world.Allreduce([mine, MPI.BYTE], [all_of_it, MPI.BYTE], op=MPI.SUM)
        took = (MPI.Wtime() - begin) / rounds * 1e6
        if all_of_it[0] != world.Get_size():
            raise SystemExit(f"a sum of {all_of_it[0]} where it is {world.Get_size()}")
        if world.Get_rank() == 0:
            print(f"{size:<10d}{took:20.2f}")
        size *= 8


directory, name = sys.argv[1:3]
if name == "allreduce":
    demo = allreduce
else:
    sys.path.insert(0, directory)
    demo = getattr(__import__(f"osu_{name}"), f"osu_{name}")
given = {key: int(number) for key, number in (word.split("=") for word in sys.argv[3:])}
demo(**{key: given[key] for key in inspect.signature(demo).parameters if key in given})
