"""One engine for questions that are answered by simulation.

* A **case** is a scenario with one slot to fill (a queue, a control, an access line).
* A **reading** is a metric of one case, subject and time window: one value a replication.
* A **rule** compares numbers made of readings with limits, and answers `holds`, `does not hold` or
  `not decided`. It names its margin and its source.
* A **question** has cases, readings, rules, figures, and the text of the document that it answers.
* A **pack** is a list of questions.

`Plan` runs the cases of a pack, equal ones once; `Campaign` is what came out.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
