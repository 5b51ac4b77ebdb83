"""An own chart in the page of every study: drops against delay, a point a run.

    aqmlab study examples/call.toml --with examples/my_chart.py

A chart is a mapping in Vega-Lite (https://vega.github.io/vega-lite), without colours of text or
paper: the page has its own, light or dark.
"""

import aqmlab
from aqmlab.report.document import Figure
from aqmlab.report.document.vega import data, number, spec


@aqmlab.chart
def drops(result: aqmlab.StudyResult) -> Figure | None:
    """Dropped packets against the 95th percentile of the time in the queue."""
    if not result.info.axes:
        return None
    axis = result.info.axes[0][0]
    rows = [
        {
            "label": str(row[axis]),
            "delay": 1e3 * row["sojourn_p95_s"],
            "dropped": 100 * row["dropped"] / row["arrived"],
        }
        for row in result.bottleneck.drop_nulls("sojourn_p95_s").to_dicts()
        if row["arrived"]
    ]
    chart = {
        "data": data(rows),
        "mark": {"type": "point", "filled": True},
        "encoding": {
            "x": number("delay", "time in the queue, 95th percentile (ms)"),
            "y": number("dropped", "dropped (%)"),
            "color": {"field": "label", "type": "nominal", "title": axis},
        },
    }
    return Figure("drops", "Drops and delay", "A point is a run.", "My own chart.", spec(chart))
