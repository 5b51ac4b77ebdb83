"""Acting steps for each CPU second, over many steps: `Run.advance`, `observe` and `set`.

`make bench-steering`, or `python crates/aqmlab-sim/benches/steering.py [STEPS]`, steers scenario
(b) of `make bench` (10 Mbit/s, 20 flows, CoDel) with a change of CoDel's target every 100 ms, and
prints for each tenth of the steps how many a CPU second was enough for. The cost of a change must
not grow with the number of changes.
"""

from __future__ import annotations

import sys
from pathlib import Path
from time import process_time

import aqmlab

SCENARIO = Path(__file__).parents[3] / "tools" / "bench" / "b-10mbit-codel.toml"
STEP_MS = 100


def curve(steps: int, *, acts: bool) -> list[tuple[float, float]]:
    """The CPU seconds of each tenth of the steps: all of them, and those of `set` alone."""
    run = aqmlab.Run(SCENARIO, set={"duration": f"{(steps + 1) * STEP_MS}ms"})
    tenths = []
    for tenth in range(10):
        began, setting = process_time(), 0.0
        for step in range(tenth * steps // 10, (tenth + 1) * steps // 10):
            run.advance((step + 1) * STEP_MS / 1000)
            run.observe()
            if acts:
                before = process_time()
                run.set("queue.target", f"{5 + step % 7}ms")
                setting += process_time() - before
        tenths.append((process_time() - began, setting))
    return tenths


def main() -> None:
    """Prints the curve."""
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    each = steps // 10
    print(f"scenario (b), {steps} steps of {STEP_MS} ms; for each {each} steps:")
    print("changes  acting steps/CPU s  steps without/CPU s  us for a change")
    pairs = zip(curve(steps, acts=True), curve(steps, acts=False), strict=True)
    for number, ((acting, setting), (only, _)) in enumerate(pairs, start=1):
        print(f"{number * each:7,} {each / acting:19,.0f} {each / only:20,.0f} "
              f"{setting / each * 1e6:16.1f}")  # fmt: skip


if __name__ == "__main__":
    main()
