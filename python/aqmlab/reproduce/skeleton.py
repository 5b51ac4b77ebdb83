"""A new study that runs: `aqmlab reproduce --new NAME`, also as a copy of another."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

import tomli_w

from aqmlab.errors import StorageError, input_error
from aqmlab.reproduce.catalogue import place

STUDY = """# What is run. docs/studies.md has all that a study may say.
name = "{name}"
title = "{title}"
replications = 10

[scenario]
duration = "30s"
bottleneck = "down"

[scenario.links.down]
rate = "10mbit"
delay = "10ms"

[scenario.links.up]
rate = "10mbit"
delay = "10ms"

[scenario.transport]     # the senders of the paper; docs/transports/tcp.md has the profiles
profile = "rfc"

[scenario.flows.bulk]
path = "down"
return_path = "up"

[[axes]]
name = "queue"
key = "queue"
values = ["codel", "pie"]

[[axes]]
name = "flows"
key = "flows.bulk.count"
values = [1, 4]
"""
PUBLISHED = """# What the paper says. docs/reproductions.md has all that this file may have.
citation = "Authors, title, year"
link = "down"            # whose queue the tables are about

[[tables]]
id = "table-1"
name = "Table 1: 95th percentile of the queuing delay"
unit = "s"
metric = {{ name = "delay_quantile", share = 0.95 }}
rows = "queue"           # axis of the rows
columns = "flows"        # axis of the columns
values = [
  # The numbers of the paper, in the order of the columns: published = [0.010, 0.020]
  {{ row = "codel" }},
  {{ row = "pie" }},
]
"""
HOOKS = '''"""What needs code: statements, figures, causes of differences, tables of other kinds.

Each function takes the measurements and gives a list; those that are not needed may go.
"""

from aqmlab.campaign import Asked, Rule, asked, below
from aqmlab.report.document import Figure, charts
from aqmlab.report.document.colours import by_label
from aqmlab.reproduce import Measurements

QUEUES = ("codel", "pie")
LOW_DELAY = Rule(
    "low-delay",
    "Half of the packets wait for less than 50 ms.",
    "with each queue and four flows the median is below 50 ms",
    lambda measured: {{
        queue: measured.delay_quantile(0.5, queue=queue, flows="4") for queue in QUEUES
    }},
    lambda found: [below(delay, 0.05, queue) for queue, delay in found.items()],
    lambda found: ", ".join(f"{{queue}} {{1e3 * delay:.1f}} ms" for queue, delay in found.items()),
)
"""A statement: id, text, rule in words, what is measured, the comparisons, the result in words."""


def claims(measured: Measurements) -> list[Asked]:
    """The statements of the paper."""
    return asked((LOW_DELAY,), measured)


def figures(measured: Measurements) -> list[Figure]:
    """The distribution of the delays."""
    queues = measured.axes["queue"]
    curves = {{}}
    for queue in queues:
        values, shares = measured.histograms(queue=queue, flows="4").cdf()
        curves[queue] = 1e3 * values, shares
    spec = charts.cdf(curves, by_label(queues), "queuing delay (ms)")
    return [Figure("delays", "Queuing delays", "Four flows, all packets.", "", spec)]
'''
README = """# {title}

What is run, what is reproduced, the small print. This text ends up in the report.
"""
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


def write(name: str, where: Path = Path()) -> Path:
    """Makes the folder of a study called `name` in `where`; its path.

    Raises `InputError` for a name that cannot be one or a folder that is there, `StorageError` if
    it cannot be written.
    """
    title = name.replace("_", " ").replace("-", " ")
    texts = {"study.toml": STUDY, "published.toml": PUBLISHED, "study.py": HOOKS,
             "README.md": README}  # fmt: skip
    filled = {file: text.format(name=name, title=title) for file, text in texts.items()}
    return _written(name, filled, where)


def copy(study: str, name: str, where: Path = Path()) -> Path:
    """Makes a copy of a study as the folder `name` in `where`; its path.

    Raises `InputError` for an unknown study, and as `write` does.
    """
    found = place(study)
    files = [found.file] if found.file else sorted(found.folder.iterdir())
    texts = {}
    for file in files:
        if file.suffix in (".toml", ".py", ".json", ".md"):
            text = file.read_text(encoding="utf-8")
            if file.suffix == ".py":  # its modules import each other: now from the copy
                text = text.replace(f"from {found.package} import", "from . import")
                text = text.replace(f"from {found.package}.", "from .")
            text = re.sub(
                rf'^name = "{re.escape(found.name)}"', f'name = "{name}"', text, flags=re.M
            )
            texts[file.name] = text
    if found.file:  # the study is a table of the file
        paper = tomllib.loads(texts.pop(found.file.name))
        own = {"name": name, **paper.pop("study")}
        texts |= {"study.toml": tomli_w.dumps(own), "published.toml": tomli_w.dumps(paper)}
    return _written(name, texts, where)


def _written(name: str, texts: Mapping[str, str], where: Path) -> Path:
    if not NAME.fullmatch(name):
        problem = "expected a name of letters, digits, - and _"
        raise input_error(problem, key="--new", given=name)
    folder = where / name
    if folder.exists():
        raise input_error("this exists already", key="--new", given=str(folder))
    try:
        folder.mkdir(parents=True)
        for file, text in texts.items():
            (folder / file).write_text(text, encoding="utf-8")
    except OSError as error:
        raise StorageError(error, folder, "the study is not complete") from error
    return folder
