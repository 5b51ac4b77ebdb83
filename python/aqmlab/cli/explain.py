"""`aqmlab explain`: parameters and metrics, from their declarations."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from aqmlab import plain
from aqmlab._core import describe, reference
from aqmlab.cli import options
from aqmlab.cli.common import check_chart, load_own, print_json, save_chart
from aqmlab.cli.listing import entries, studies
from aqmlab.cli.options import argument, flag, option
from aqmlab.errors import input_error, nearest, unknown

KEY = re.compile(r"(link|flow)s\.[^.]+\.(?:(.+\..+)|(.+))")
STATISTIC = re.compile(r"_(?:mean|max|p\d+)$")
EXAMPLE = (
    "aqmlab explain codel\n\naqmlab explain codel.target\n\naqmlab explain limit\n\n"
    "aqmlab explain jain\n\naqmlab explain codel --chart codel.svg"
)


def explain(
    name: str | None = argument(
        "[NAME]",
        "A discipline, control, preset, section, parameter or metric: codel, "
        "pie.target, my_queue.py:MyQueue, jain. Default: all.",
        default=None,
    ),
    with_: list[str] | None = options.WITH,
    json: bool = options.JSON,
    markdown: bool = flag("--markdown", "Print the reference as a page in Markdown."),
    chart: Path | None = option("FILE.svg", "Draw the response of a queue to a load step."),
) -> None:
    """Explain a queue discipline, parameter or metric: default, range, meaning, source."""
    load_own(with_)
    if chart is not None:
        _draw(name, chart)
        return
    found = find(name)
    if json:
        print_json(found)
        return
    if markdown:
        from aqmlab.report.reference import page

        print(page(found, whole=name is None))
        return
    for entry in found:
        print(text(entry))


def _draw(name: str | None, path: Path) -> None:
    """Draws the discipline `name` at work."""
    from aqmlab.report.plot import behaviour as figure

    if name is None:
        raise input_error("a chart needs a discipline", hint=f"aqmlab explain codel --chart {path}")
    check_chart(path, "--chart")
    save_chart(figure(name), path)


def find(name: str | None) -> list[dict[str, Any]]:
    """The entries that match `name`, or the entry of a class (`my_queue.py:MyQueue`).

    Raises `InputError` if there is no such thing.
    """
    if name is None:
        return entries()
    if ":" in name:
        return [_own(name)]
    if name in (study["name"] for study in studies()):
        hint = f"`aqmlab reproduce {name}` runs it"
        raise input_error("this is a study: it has no parameters", given=name, hint=hint)
    every = entries()
    # A key as `--set` has it, and a metric as rules and goals have it: `sojourn_p95`.
    name = KEY.sub(lambda key: key[2] or f"{key[1]}.{key[3]}", name)
    metrics = [each for each in every if each["section"] == "metric"]
    if found := matching(name, every) or matching(STATISTIC.sub("", name), metrics):
        return found
    if of_tc := [each for each in every if (each.get("tc") or "").split()[:1] == [name]]:
        return of_tc
    if of_manual := _of_manual(name, every):
        return of_manual
    head, dot, parameter = name.partition(".")
    named = [entry for entry in reference() if head in (entry["name"], entry["section"])]
    if not dot or not named:
        guess = nearest(head, [entry["name"] for entry in every])
        raise input_error(
            "unknown name; known: those of `aqmlab list`, sections and keys of scenarios",
            given=head,
            hint=f"did you mean `{guess}`?" if guess else None,
        )
    known = dict.fromkeys(each["name"] for entry in named for each in entry["params"])
    known |= {each["word"]: None for entry in named for each in entry.get("words", ())}
    raise unknown(f"parameter of {head}", parameter, known)


def matching(name: str, entries: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The entries that `name` refers to, with the parameters it names; empty without any.

    `name` is `codel`, `codel.target`, a parameter alone (`target`: of everything that has one),
    or a metric, which may have the name of a parameter: then both match.
    """
    head, dot, parameter = name.partition(".")
    measured = [each for each in entries if each["section"] == "metric"]
    others = [each for each in entries if each["section"] != "metric"]
    measured = [each for each in measured if name in (each["name"], each["section"])]
    named = [each for each in others if head in (each["name"], each["section"])]
    if named and not dot:
        return named + measured
    found = []
    for entry in named or ([] if dot else others):
        wanted = parameter if dot else name
        words = [each for each in entry.get("words", ()) if each["word"] == wanted]
        names = {wanted, *(each["key"] for each in words)}
        params = [each for each in entry["params"] if each["name"] in names]
        if params or words:
            found.append(entry | {"params": params, "asked": words})
    return measured + found


def _of_manual(name: str, entries: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The parameters that a manual of `tc` has under this name: `netem`, `gemodel`."""
    word = re.compile(rf"\btc-.*\b{re.escape(name)}\b")
    found = []
    for entry in entries:
        params = [each for each in entry["params"] if word.search(each["source"])]
        if params:
            found.append(entry | {"params": params})
    return found


def _own(name: str) -> dict[str, Any]:
    """The entry of a class in Python, or of a type in a library."""
    section, summary, params = describe(name, [])
    more: dict[str, Any] = {"range": None, "choices": [], "meaning": "", "source": "the class"}
    return {
        "section": section,
        "name": name,
        "summary": summary,
        "preset_of": None,
        "settings": {},
        "source": None,
        "params": [more | param for param in params],
    }


def text(entry: Mapping[str, Any]) -> str:
    """An entry of the reference in words."""
    width = plain.width()
    head = plain.wrapped(f"{entry['name']}  {entry['summary']}", width)
    head[0] = plain.styled(entry["name"], plain.TITLE) + head[0][len(entry["name"]) :]
    lines = head
    if entry["section"] == "metric":
        for key in ("of", "unit", "where", "source"):
            lines.append(f"  {plain.styled(key, plain.BOLD)}{' ' * (8 - len(key))}{entry[key]}")
        return "\n".join([*lines, ""])
    if entry["preset_of"]:
        settings = ", ".join(f"{key} = {value}" for key, value in entry["settings"].items())
        lines += plain.wrapped(f"  {entry['preset_of']} with {settings}", width)
    if entry.get("tc"):
        lines.append(f"  Linux: tc qdisc replace dev eth0 root {entry['tc']}")
    if entry["source"]:
        lines += plain.wrapped(f"  Source: {entry['source']}", width)
    for sentence in _words(entry):
        lines += plain.wrapped(f"  {sentence}", width)
    left = max([0, *(len(param["name"]) for param in entry["params"])]) + 2
    for param in entry["params"]:
        texts = [(param["meaning"], ""), (_facts(param, entry["settings"]), plain.DIM)]
        lines.append(plain.beside(param["name"], [each for each in texts if each[0]], left, " "))
    return "\n".join([*lines, ""])


def _words(entry: Mapping[str, Any]) -> list[str]:
    """Sentences about the words of tc: all of an entry, or those that were asked for."""
    words = entry.get("words", ())
    if "asked" in entry:
        return [_word(each) for each in entry["asked"]]
    known = [each for each in words if not each["why"]]
    said = [f"{each['word']} ..." if each["has_value"] else each["word"] for each in known]
    sentences = [f"Words: {', '.join(dict.fromkeys(said))}."] if said else []
    for title, is_refused in (("Without effect", False), ("Not modelled", True)):
        others = [each for each in words if each["why"] and each["is_refused"] == is_refused]
        if others:
            sentences.append(f"{title}: {', '.join(each['word'] for each in others)}.")
    return sentences


def _word(word: Mapping[str, Any]) -> str:
    """A sentence about one word of tc."""
    name = f"{word['word']} ..." if word["has_value"] else word["word"]
    if word["why"]:
        return f"{name}: {'not modelled' if word['is_refused'] else 'no effect'}; {word['why']}."
    if word["sets"] is not None:
        return f"{name}: {word['key']} = {word['sets']}."
    return f"{name}: the word of tc for {word['key']}." if word["key"] else f"{name}: a word of tc."


def _facts(param: Mapping[str, Any], settings: Mapping[str, Any]) -> str:
    """Default, range and source of a parameter."""
    own = settings.get(param["name"])
    usual = "required" if param["default"] is None else f"default {param['default']}"
    facts = [usual if own is None else f"default {own} here, else {param['default']}"]
    if param["choices"]:
        facts.append(f"one of {', '.join(param['choices'])}")
    elif param["range"]:
        facts.append(f"{param['range'][0]} to {param['range'][1]}")
    facts.append(f"({param['kind']}; source: {param['source']})")
    return " · ".join(facts)
