"""Power and false alarms of `aqmlab check` with a baseline: the table in docs/check.md.

python -m tools.check_power [TRIES [COMPARISONS]]

The pack below has one CUBIC flow over a path that loses 1 % of the packets, so that its goodput is
proportional to the size of its segments. The planted regression is a smaller size.

1. Planted: `aqmlab check` as a process, with the seed of its baseline, a new seed each try.
2. Unchanged: replications of other seeds as if they were pairs. Code that was not changed gives the
   same numbers as its baseline, and never an alarm; other seeds stand for a change that moves every
   random event, and no mean.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from aqmlab.campaign import Plan, gate
from aqmlab.campaign.baseline import Baseline, save
from aqmlab.campaign.packfile import parse
from aqmlab.scenario.settings import parse_toml

REPLICATIONS = 200
SEGMENT, PLANTED = "1460b", "1385b"
SURE = 5000
"""Replications that measure the planted regression."""
PACK = f"""
replications = {REPLICATIONS}
slot = "flows.bulk.transport.mss"
contenders.code = "SEGMENT"
expect.goodput = "bulk.goodput no worse than baseline by 5%"
[scenario]
duration = "20s"
bottleneck = "down"
links.down = {{ rate = "20mbit", delay = "20ms", loss = 0.01 }}
links.up = {{ rate = "20mbit", delay = "20ms" }}
record.warmup = "3s"
[scenario.flows.bulk]
path = "down"
return_path = "up"
start = {{ each = ["0s", "1s"] }}
"""


def plan(segment: str) -> Plan:
    """The pack with segments of this size."""
    pack = parse(parse_toml(PACK.replace("SEGMENT", segment), "pack.toml"), "pack.toml")
    return Plan(pack, pack.contenders)


def regression() -> float:
    """The share of the goodput that the planted size costs."""
    means = []
    for segment in (SEGMENT, PLANTED):
        campaign = plan(segment).run(SURE, 1)
        [question] = campaign.plan.pack.questions
        means.append(campaign.at(question.id, "code").mean("", "goodput", "bulk"))
    return 1 - means[1] / means[0]


def check(folder: Path, segment: str, name: str, *words: str) -> int:
    """Exit status of `aqmlab check`."""
    (folder / "pack.toml").write_text(PACK.replace("SEGMENT", segment))
    more = ["--no-report", "--out", str(folder / name), *words]
    command = [sys.executable, "-m", "aqmlab", "check", str(folder / "pack.toml"), *more]
    return subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode


def planted(seed: int) -> tuple[bool, float, float]:
    """Whether the regression is found; seconds by the clock and of the processors, for both."""
    with tempfile.TemporaryDirectory() as name:
        folder, base = Path(name), str(Path(name) / "base.json")
        begin, used = time.monotonic(), os.times()
        assert check(folder, SEGMENT, "main", "--save", base, "--seed", str(seed)) == 0
        status = check(folder, PLANTED, "change", "--baseline", base)
        assert status in (0, 1), status
        now = os.times()
        cpu = now.children_user + now.children_system - used.children_user - used.children_system
        return status == 1, time.monotonic() - begin, cpu


def unchanged(comparisons: int) -> int:
    """Returns the number of comparisons of the same code with other seeds that give an alarm."""
    alarms = 0
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "base.json"
        baseline = None
        for seed in range(1, comparisons + 2):
            if baseline is not None:
                baseline = replace(baseline, seed=seed)
            campaign = plan(SEGMENT).run(seed=seed, baseline=baseline)
            alarms += any(each.fails for each in gate.checked(campaign))
            save(campaign, file)
            baseline = Baseline.load(file)
    return alarms


def main() -> None:
    """Prints the table."""
    tries, comparisons = ([int(word) for word in sys.argv[1:]] + [20, 400][len(sys.argv) - 1 :])[:2]
    print(f"Planted regression: {100 * regression():.2f} % ({SURE} replications)")
    found = [planted(seed) for seed in range(1, tries + 1)]
    print(
        f"Found in {sum(each[0] for each in found)} of {tries} tries, at most "
        f"{max(each[1] for each in found):.1f} s by the clock and "
        f"{max(each[2] for each in found):.1f} s of the processors for baseline and check"
    )
    print(f"Unchanged: {unchanged(comparisons)} alarms in {comparisons} comparisons")


if __name__ == "__main__":
    main()
