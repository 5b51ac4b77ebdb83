"""Parts of the study that need code: statements, figures, causes of differences, other tables.

Each function takes the measurements and returns a list; delete those that are not needed.
"""

from aqmlab.campaign import Asked, Rule, asked, below
from aqmlab.report.document import Figure, charts
from aqmlab.report.document.colours import by_label
from aqmlab.reproduce import Measurements

QUEUES = ("codel", "pie")
LOW_DELAY: Rule[Measurements, dict[str, float]] = Rule(
    "low-delay",
    "Half of the packets wait for less than 50 ms.",
    "with each queue and four flows the median is below 50 ms",
    lambda measured: {
        queue: measured.delay_quantile(0.5, queue=queue, flows="4") for queue in QUEUES
    },
    lambda found: [below(delay, 0.05, queue) for queue, delay in found.items()],
    lambda found: ", ".join(f"{queue} {1e3 * delay:.1f} ms" for queue, delay in found.items()),
)
"""A statement: id, text, rule in words, measurement, comparisons, result in words."""


def claims(measured: Measurements) -> list[Asked]:
    """The statements of the paper."""
    return asked((LOW_DELAY,), measured)


def figures(measured: Measurements) -> list[Figure]:
    """The distribution of the delays."""
    queues = measured.axes["queue"]
    curves = {}
    for queue in queues:
        values, shares = measured.histograms(queue=queue, flows="4").cdf()
        curves[queue] = 1e3 * values, shares
    spec = charts.cdf(curves, by_label(queues), "queuing delay (ms)")
    return [Figure("delays", "Queuing delays", "Four flows, all packets.", "", spec)]
