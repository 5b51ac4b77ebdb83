"""What is loaded when it is first used, all of it in one place.

Modules import what they need at their top; a command's file is loaded when the command is given.
What runs before anything may be loaded imports inside functions: `quick`, `__main__`, `cli.run`,
what a shell is started from (`emulate`, `study.single`, `cli.watch`) and what measures memory
(`benchmarks`). For the rest there are four reasons not to, and each entry of `LATE` has one:

* **start**: `import aqmlab`, `aqmlab --help` and the processes that the emulator copies (which
  must have one thread) are to be quick and small: no tables, no charts;
* **up**: a result knows its pages and metrics, which are made in the layers above it;
* **not needed**: what aqmlab works without;
* **own**: two modules of one layer, of which each is of use to the other.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

LATE = {
    # own: values of a document know how they are rendered
    "csv": "aqmlab.document.tables:csv",
    "latex": "aqmlab.document.tables:latex",
    "markdown": "aqmlab.document.tables:markdown",
    "document_markdown": "aqmlab.document.tables:document_markdown",
    "page": "aqmlab.document.html:page",
    "fragment": "aqmlab.document.html:fragment",
    "terminal": "aqmlab.document.terminal:show",
    "blocks": "aqmlab.document.terminal:blocks",
    # start: rich, for commands that print tables
    "console": "aqmlab.document.terminal:console",
    "grid": "aqmlab.document.terminal:grid",
    # up: what results know of their pages, metrics and folders
    "run_document": "aqmlab.report.run_page:document",
    "write_run": "aqmlab.report.run_page:write",
    "study_document": "aqmlab.report.study_page:document",
    "write_study": "aqmlab.report.study_page:write",
    "open_results": "aqmlab.study.folder:open_results",
    "drops_explained": "aqmlab.report.drops_page:sections",
    "own_metrics_shown": "aqmlab.report.run_page:own_metrics",
    "metrics": "aqmlab.metrics.table:metrics",
    "to_xarray": "aqmlab.measure.grid:to_xarray",
    "own_metrics": "aqmlab.measure.values:add_own",
    "studies": "aqmlab.reproduce.catalogue:places",
    "new_study": "aqmlab.reproduce.skeleton:write",
    "reproduce": "aqmlab.reproduce:reproduce",
    "metric_entries": "aqmlab.measure:entries",
    "load_own": "aqmlab.report.own:load",
    "tradeoff": "aqmlab.report.tradeoff:figure",
    "tradeoff_runs": "aqmlab.report.tradeoff:runs",
    # start: 0.1 s and 60 MB of a JavaScript engine, for pictures alone
    "vl_convert": "vl_convert",
    # start: tables, for what few studies have
    "find_metric": "aqmlab.measure:find",
    # start: threads of its own, with which no shell can be started
    "special": "scipy.special",
    "parity_page": "aqmlab.emulate.parity_page",
    # not needed: what only some have
    "xarray": "xarray",
    "distributed": "distributed",
}


def late(name: str) -> Any:
    """The object (or module) that `LATE` has under this name."""
    module, _, attribute = LATE[name].partition(":")
    found = import_module(module)
    return getattr(found, attribute) if attribute else found
