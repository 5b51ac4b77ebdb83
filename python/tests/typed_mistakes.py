"""Mistakes that a type checker finds: `make lint` fails if one of these lines has no error.

`mypy --strict` refuses an `ignore` that ignores nothing.
"""

from aqmlab.scenario import CoDel, Flow, Link, Rate, Scenario, Transport

CoDel(targt="2ms")  # type: ignore[call-arg]
Link(ratee="1mbit")  # type: ignore[call-arg]
Flow(pth="a")  # type: ignore[call-arg]
Transport(stack="linux")  # type: ignore[arg-type]
Link(rate=10)  # type: ignore[arg-type]

link = Link(rate=Rate("1mbit"), queue=CoDel(target="2ms"))
Scenario(links={"a": link}, flows={"f": Flow(path="a", return_path="a", class_="ef")})
