"""The template for Slurm, with an `sbatch` that runs jobs at once."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from helpers import PATIENCE, environment, run_program, table_bytes

import aqmlab

TEMPLATE = Path(__file__).parents[2] / "examples/slurm/sweep.sh"
SBATCH = f"""#!{sys.executable}
# As sbatch(1): copies the script, and runs it for each task of the array; a job whose dependency
# failed is not run.
import os, pathlib, shutil, subprocess, sys
options = dict(each[2:].partition("=")[::2] for each in sys.argv[1:] if each.startswith("--"))
script, *words = [each for each in sys.argv[1:] if not each.startswith("--")]
known = {{"parsable", "job-name", "array", "cpus-per-task", "dependency"}}
assert set(options) <= known, options
spool = pathlib.Path("spool")
spool.mkdir(exist_ok=True)
number = str(len(list(spool.iterdir())) + 100)
copy = shutil.copy(script, spool / number)
print(number + ";somewhere" if "parsable" in options else f"Submitted batch job {{number}}")
needs = options.get("dependency", "").removeprefix("afterok:")
if needs and not pathlib.Path(f"spool/{{needs}}").read_text().endswith("# done"):
    sys.exit(0)
first, _, last = options.get("array", "").partition("-")
tasks = range(int(first), int(last) + 1) if first else [None]
failed = False
for task in tasks:
    job = os.environ | {{"SLURM_JOB_ID": number}}
    if task is not None:
        job |= {{"SLURM_ARRAY_TASK_ID": str(task), "SLURM_CPUS_PER_TASK": options["cpus-per-task"]}}
    done = subprocess.run(["sh", copy, *words], env=job, stdout=subprocess.DEVNULL)
    failed |= done.returncode != 0
if not failed:
    with open(copy, "a") as file:
        file.write("# done")
"""
SRUN = '#!/bin/sh\n[ "$SLURM_ARRAY_TASK_ID" != "$FAILS" ] || exit 1\nexec "$@"\n'


@pytest.fixture
def slurm(tmp_path: Path) -> dict[str, str]:
    """An environment with the programs of Slurm."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in (("sbatch", SBATCH), ("srun", SRUN)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    place = os.pathsep.join([str(programs), str(Path(sys.executable).parent), os.environ["PATH"]])
    return environment() | {"PATH": place, "FAILS": "0"}


def submit(slurm: dict[str, str], study: Path) -> None:
    words = ["sh", TEMPLATE, study.name, "out put", "3", "1"]
    done = run_program(words, env=slurm, cwd=study.parent, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    assert "Submitted batch job" in done.stdout


def test_the_template_runs_all_parts_and_merges_them(slurm: dict[str, str], study: Path) -> None:
    """A job that fails leaves the study incomplete; the same command completes it."""
    out = study.parent / "out put"
    submit(slurm | {"FAILS": "2"}, study)
    assert not out.exists()
    submit(slurm, study)
    aqmlab.Study(study).run(study.parent / "here")
    assert table_bytes(out) == table_bytes(study.parent / "here")
