"""mpi4py_tests.py TESTS LIST [OPTION...]: runs mpi4py's own tests in the directory TESTS, except those in LIST.

Each line of LIST has "module.Class.method", in which "*" matches anything, a tab, and the reason. OPTIONs are those of
mpi4py's runner. Each rank ends with a line "left out: N" on standard error.
"""

import fnmatch
import pathlib
import runpy
import sys
import unittest

tests, listed = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
patterns = [line.split("\t")[0] for line in listed.read_text().splitlines() if line and not line.startswith("#")]
left_out = []


names_of = unittest.TestLoader.getTestCaseNames


def wanted(loader, case):
    """Names of the tests of a class that are to be run."""
    names = names_of(loader, case)
    where = f"{case.__module__}.{case.__qualname__}"
    out = [name for name in names if any(fnmatch.fnmatchcase(f"{where}.{name}", pattern) for pattern in patterns)]
    left_out.extend(out)
    return [name for name in names if name not in out]


unittest.TestLoader.getTestCaseNames = wanted
runner = next(path for path in (tests / "main.py", tests / "runtests.py") if path.exists())
sys.argv[:] = [str(runner), *sys.argv[3:]]
sys.path.insert(0, str(tests))
try:
    runpy.run_path(str(runner), run_name="__main__")
finally:
    sys.stderr.write(f"left out: {len(left_out)}\n")
