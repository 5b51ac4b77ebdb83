"""The live lab: the page in Chromium, the server, runs in steps."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from time import process_time
from typing import Any
from xml.etree import ElementTree

import pytest
from browser import LAB, Browser
from helpers import Aqmlab, assert_refused

import aqmlab as lab
from aqmlab.cli.lab_server import LabServer, Live

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "crates" / "aqmlab-web" / "build.py"
QUEUES = "JSON.stringify(lab.sides.map((s) => s.queue.map((p) => [p.flow, p.arrival])))"
SCENE = """
duration = "4s"
[links.bottleneck]
rate = "10mbit"
queue = "codel"
[links.back]
rate = "100mbit"
[flows.download]
count = 2
path = ["bottleneck"]
return_path = ["back"]
"""
MORE = {"path": ["bottleneck"], "return_path": ["back"]}


def test_the_page_is_made_of_the_sources_as_they_are() -> None:
    command = [sys.executable, str(BUILD), "--digest"]
    digest = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    stale = "docs/lab/index.html is older than the engine or the page: run `make lab`"
    assert f'<meta name="engine-sources" content="{digest}">' in LAB.read_text(), stale


def test_the_page_asks_for_nothing_from_elsewhere() -> None:
    text = LAB.read_text()
    before, after = text.split('<script type="text/plain" id="engine">')
    rest = before + after.split("</script>", 1)[1]
    assert "http://" not in rest.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in rest
    assert len(text) <= 2_000_000


def digest_of(scenario: Any) -> str:
    """The digest of a whole run in this process."""
    run = lab.Run(scenario)
    run.finish()
    return run.digest


def play(page: Browser, seconds: float) -> None:
    """Plays at ten times real time, to a moment at least."""
    page.choose("#speed", "10")
    page.click("#play")
    page.wait_for(f"lab.time >= {seconds}")
    page.click("#play")


def saved_as_played(page: Browser, folder: Path) -> str:
    """The scenarios of both sides as saved, which have the results of the page."""
    page.run("""{ const [made, files] = [URL.createObjectURL, (window.files = [])];
        URL.createObjectURL = (file) => { files.push(file.text()); return made(file); }; }""")
    page.click("#save")
    results = json.loads(page.run("document.getElementById('dialog').dataset.results"))
    text: str = page.run("document.getElementById('dialog-value').value")
    for part, expected in zip(text.split("# ------"), results, strict=True):
        (folder / "saved.toml").write_text(f"# {part}")
        assert digest_of(folder / "saved.toml") == expected
    # Each side is a file of its own: one with both would have all keys twice.
    links = page.run("[...document.querySelectorAll('#dialog-files a')].map((a) => a.download)")
    assert links == ["aqmlab-lab-a.toml", "aqmlab-lab-b.toml"]
    for content, expected in zip(page.run("Promise.all(files)"), results, strict=True):
        (folder / "file.toml").write_text(content)
        assert digest_of(folder / "file.toml") == expected
    return text


def test_the_check_gives_the_native_digests(page: Browser) -> None:
    page.open(f"{LAB.as_uri()}#check")
    text = page.wait_for("document.getElementById('check')?.textContent")
    cases = json.loads(text)
    assert len(cases) == 22
    for name, case in cases.items():
        assert case["digest"] == digest_of(lab.Scenario.from_toml(case["toml"])), name


def test_a_wrong_time_is_refused_with_the_units(opened: Browser) -> None:
    for wrong in ("1h", "1.2.3ms", "40"):
        opened.choose("#rtt", wrong)
        message = opened.text("message")
        assert "units: ns, us, ms, s, min" in message and f'"{wrong}"' in message, message
    opened.choose("#rtt", "0.01min")
    assert opened.text("message") == ""
    assert opened.run("lab.scene.rtt") == "0.01min"


def test_knobs_are_turned_while_it_runs_and_saved(opened: Browser, tmp_path: Path) -> None:
    play(opened, 1)
    opened.choose("#rate", "4mbit")
    opened.choose("#rtt", "100ms")
    opened.choose("#buffer", "60p")
    opened.choose("#discipline-0", "fq_codel")
    opened.choose("#knob-1-target", "20ms")
    for kind in ("download", "call", "web", "game", "flood"):
        opened.click(f"[data-add={kind}]")
    play(opened, 3)
    opened.click("#flow-list li button")
    opened.choose("#flow-list select", "reno")
    play(opened, 4)
    assert opened.run("lab.log.length") == 13
    opened.choose("#discipline-1", "pie")
    opened.choose("#knob-1-target", "fast")
    assert "target" in opened.text("message")
    saved_as_played(opened, tmp_path)
    assert opened.problems == []


def test_a_setting_keeps_the_focus_and_keys_work_beside_a_button(opened: Browser) -> None:
    play(opened, 1)
    opened.run("document.querySelector('#side-1 details').open = true")
    opened.run("document.getElementById('knob-1-ecn').focus()")
    opened.choose("#knob-1-ecn", "true")
    assert opened.run("lab.log.length") == 1
    assert opened.run("document.querySelector('#side-1 details').open")
    assert opened.run("document.activeElement.id") == "knob-1-ecn"
    time = opened.run("(document.getElementById('play').focus(), lab.time)")
    opened.key("ArrowLeft")
    assert opened.run("lab.time") == pytest.approx(time - 0.5)
    assert opened.run("document.getElementById('clock').ariaLive") == "off", (
        "it changes all the time"
    )


def test_words_and_delays_are_those_of_a_run_of_the_scenario(
    opened: Browser, tmp_path: Path
) -> None:
    opened.choose("#rate", "1Mbit")
    opened.click("[data-add=flood]")
    assert opened.run("lab.scene.flows[3].rate") == "0.8Mbit"
    play(opened, 5)
    saved_as_played(opened, tmp_path)
    times = lab.run(tmp_path / "saved.toml").times
    [native] = times.filter(group="call-1", quantity="delay", direction="forward")["max_s"]
    delays = "Math.max(...lab.sides[1].bins.map((bin) => bin.delays[2] ?? 0))"
    assert opened.run(delays) == pytest.approx(native, rel=1e-9)
    opened.run("document.getElementById('dialog').close()")
    while opened.run("!!document.querySelector('#flow-list li button')"):
        opened.click("#flow-list li button")
    opened.click("[data-add=call]")
    play(opened, 9)
    assert "The link was busy for" in opened.text("words-1"), "also if few packets fill each 20 ms"


# The colours of packets in the upper and the lower half of queue B, which holds one of each flow.
LANES = """(async () => {
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  lab.sides[1].queue = lab.sides[1].groups.map((_, group) => ({ flow: group, group, arrival: 0 }));
  lab.seen += 0.001;
  await frame(); await frame();
  const canvas = document.getElementById("queue-1");
  const half = (canvas.height * 62) / 170;
  const width = canvas.width * (1 - 78 / canvas.clientWidth);
  const colours = (top, height) => {
    const { data } = canvas.getContext("2d").getImageData(0, top, width, height);
    const found = new Set();
    for (let at = 0; at < data.length; at += 4) found.add(data.slice(at, at + 3).join());
    return ["122,81,149", "0,132,95", "184,69,127", "107,107,107"].map((each) => found.has(each));
  };
  return [colours(0, half), colours(half, half)];
})()"""


WRITTEN = """(async () => {
  const kind = CanvasRenderingContext2D.prototype, draw = kind.fillText, seen = [];
  kind.fillText = function (text, ...place) {
    seen.push(text);
    draw.call(this, text, ...place);
  };
  document.getElementById("step").click();
  for (let count = 0; count < 4; count += 1)
    await new Promise((done) => requestAnimationFrame(done));
  kind.fillText = draw;
  return seen;
})()"""


def test_an_empty_queue_has_no_time_in_the_queue(opened: Browser) -> None:
    play(opened, 1)
    captions = [text for text in opened.run(WRITTEN) if "packet" in text]
    assert captions and not [text for text in captions if "in the queue" in text]
    assert any(re.fullmatch(r"\d+ packets?; longest wait [\d.]+ ms", text) for text in captions)


def test_dualpi2_has_one_lane_for_l4s_and_one_for_the_rest(opened: Browser) -> None:
    opened.choose("#discipline-1", "dualpi2")
    opened.choose("#control", "prague")
    opened.choose("#ecn", "accurate")
    opened.click("[data-add=download]")
    play(opened, 1)
    assert opened.run("lab.sides[1].groups") == ["download-1", "download-2", "call-1", "download-3"]
    assert opened.run(LANES) == [[False, False, False, True], [True, True, True, False]]


def test_quic_flows_share_the_queues_and_go_back(opened: Browser, tmp_path: Path) -> None:
    play(opened, 1)
    opened.choose("#control", "noq:cubic")
    opened.click("[data-add=download]")
    opened.choose("#control", "quinn:new_reno")
    for kind in ("web", "call"):
        opened.click(f"[data-add={kind}]")
    play(opened, 4)
    opened.run("document.activeElement.blur()")
    queues = opened.run(QUEUES)
    opened.key("ArrowLeft")
    opened.key("ArrowRight")
    assert opened.run(QUEUES) == queues
    text = saved_as_played(opened, tmp_path)
    assert 'stack = "noq"' in text and 'controller = "new_reno"' in text
    assert opened.problems == []


def test_it_goes_back_to_any_moment_and_a_link_opens_the_same(opened: Browser) -> None:
    play(opened, 2)
    opened.run("document.activeElement.blur()")
    time, queues = opened.run("lab.time"), opened.run(QUEUES)
    opened.key("ArrowLeft")
    assert opened.run("lab.time") == pytest.approx(time - 0.5)
    opened.key("ArrowRight")
    assert opened.run(QUEUES) == queues
    opened.click("#step")
    opened.click("#step")
    assert 0 < opened.run("lab.time") - time < 0.1
    opened.choose("#rate", "5mbit")
    opened.choose("#time", "1000")
    rate = "[lab.time, document.getElementById('rate').value]"
    assert opened.run(rate) == [1, "10mbit"]
    opened.choose("#time", "99999")
    play(opened, time + 1)
    queues, time = opened.run(QUEUES), opened.run("lab.time")
    opened.click("#link")
    address = opened.wait_for("document.getElementById('dialog-value').value")
    opened.open(address)
    opened.wait_for("window.meter && meter.ready")
    assert opened.run("lab.time") == time
    assert opened.run(QUEUES) == queues
    assert opened.run("document.getElementById('rate').value") == "5mbit"


ENDS = """Math.max(...[...document.querySelectorAll("button, input, select")].map((each) =>
  each.getBoundingClientRect().right))"""


def test_every_control_has_a_name_and_no_page_is_too_wide(opened: Browser) -> None:
    opened.choose("#discipline-1", "fq_codel")
    for width, scheme in ((1200, "light"), (320, "dark")):
        opened.look(width, 800, scheme, "reduce")
        assert opened.run("document.documentElement.scrollWidth") <= width
        assert opened.run(ENDS) <= width, "also of long names of parameters"
        assert opened.run("matchMedia('(prefers-reduced-motion: reduce)').matches")
    opened.look(1280, 800)
    opened.choose("#discipline-1", "red-ns2")
    names = "[...document.querySelectorAll('.field > code')]"
    assert "min_threshold" in opened.run(f"{names}.map((each) => each.textContent)")
    assert opened.run(f"Math.max(...{names}.map((each) => each.offsetHeight))") < 26, "one line"
    nodes = opened.send("Accessibility.getFullAXTree")["nodes"]
    roles = {"button", "combobox", "textbox", "slider", "image", "link"}
    named = [
        (node["role"]["value"], node.get("name", {}).get("value", ""))
        for node in nodes
        if not node["ignored"] and node["role"]["value"] in roles
    ]
    assert len(named) > 30
    assert [role for role, name in named if not name] == []


MOVING = """(async () => {
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  const packet = { flow: 1, group: 0, arrival: 1, reason: "codel", since: performance.now() };
  lab.sides[1].falling = [{ ...packet }];
  lab.sides[1].leaving = [{ ...packet }];
  const picture = () => document.getElementById("queue-1").toDataURL();
  await frame(); await frame();
  const before = picture();
  for (let count = 0; count < 8; count += 1) await frame();
  return [lab.sides[1].falling.length, before === picture()];
})()"""


# The lowest contrast of words in a colour of the page, or on one (WCAG 2.2, 1.4.3).
CONTRAST = """(() => {
  const light = (text) => {
    const canvas = Object.assign(document.createElement("canvas"), { width: 1, height: 1 });
    const cx = canvas.getContext("2d");
    cx.fillStyle = text;
    cx.fillRect(0, 0, 1, 1);
    const linear = [...cx.getImageData(0, 0, 1, 1).data.slice(0, 3)].map((each) => each / 255)
      .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  };
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(`--${name}`);
  const parts = [...document.querySelectorAll(".shares i")].map((each) => getComputedStyle(each));
  const contrast = (two) => (Math.max(...two) + 0.05) / (Math.min(...two) + 0.05);
  return Math.min(...[
    ...["ink", "soft", "a", "b", "bad"].map((name) => [of(name), of("panel")]),
    [of("on-a"), of("a")], [of("on-b"), of("b")],
    ...parts.map((each) => [each.color, each.backgroundColor]),
  ].map((pair) => contrast(pair.map(light))));
})()"""


def test_words_and_letters_stand_out(opened: Browser) -> None:
    for kind in ("web", "game", "download", "download", "download"):
        opened.click(f"[data-add={kind}]")
    play(opened, 2)
    assert opened.run("document.querySelectorAll('.shares i').length") == 16
    for scheme in ("dark", "light"):
        opened.look(1200, 900, scheme)
        assert opened.run(f"matchMedia('(prefers-color-scheme: {scheme})').matches")
        assert opened.run(CONTRAST) >= 4.5


def test_packets_do_not_move_for_those_who_want_no_motion(opened: Browser) -> None:
    for motion, stands_still in (("no-preference", False), ("reduce", True)):
        opened.look(1200, 900, "light", motion)
        assert opened.run(MOVING) == [1, stands_still]


# What a click would save: the page's own names and contents, in place of downloads.
SAVED = """(async () => {
  const [made, saved] = [URL.createObjectURL, {}];
  let latest = null;
  URL.createObjectURL = (blob) => { latest = blob; return "data:,"; };
  HTMLAnchorElement.prototype.click = function () { saved[this.download] = latest; };
  for (const id of ["svg", "csv", "png"]) {
    document.getElementById(id).dispatchEvent(new Event("click"));
  }
  while (!saved["aqmlab-lab.png"]) await new Promise((done) => setTimeout(done, 10));
  URL.createObjectURL = made;
  delete HTMLAnchorElement.prototype.click;
  const png = await createImageBitmap(saved["aqmlab-lab.png"]);
  const canvas = document.createElement("canvas");
  Object.assign(canvas, { width: png.width, height: png.height });
  const cx = canvas.getContext("2d");
  cx.drawImage(png, 0, 0);
  const pixels = new Uint32Array(cx.getImageData(0, 0, png.width, png.height).data.buffer);
  const texts = await Promise.all(["svg", "csv"].map((end) => saved[`aqmlab-lab.${end}`].text()));
  return [...texts, new Set(pixels).size];
})()"""


def test_it_plays_without_an_error_or_a_request_and_pictures_and_a_table_can_be_taken(
    opened: Browser,
) -> None:
    play(opened, 3)
    assert opened.run("lab.sides.every((side) => side.bins.length > 100)")
    assert opened.text("words-0").startswith("Standing queue")
    assert opened.problems == []
    assert opened.requests == [LAB.as_uri()]
    svg, table, colours = opened.run(SAVED)
    lines = [node for node in ElementTree.fromstring(svg).iter() if node.tag.endswith("path")]
    assert len([line for line in lines if len(line.get("d", "")) > 500]) >= 6, "curves of 3 s"
    rows = list(csv.DictReader(io.StringIO(table)))
    seen = opened.run("lab.sides.map((side) => [side.bins.length, side.groups.length])")
    assert len(rows) == sum(bins * (1 + groups) for bins, groups in seen) >= 2 * 150 * 3
    of_side, of_group = ("drops", "marks", "backlog_packets"), ("group_drops",)
    for row in rows:
        own, others = (of_group, of_side) if row["group"] else (of_side, of_group)
        assert all(row[name] for name in own) and not any(row[name] for name in others)
    waits = {
        side: [float(row["sojourn_max_s"] or 0) for row in rows if row["side"] == side]
        for side in "AB"
    }
    assert max(waits["A"]) > max(waits["B"]) > 0.005
    assert sum(int(row["drops"]) for row in rows if row["side"] == "B" and not row["group"]) > 0
    assert colours > 50, "a picture of one colour shows nothing"
    assert opened.problems == []


def test_it_says_of_what_a_probability_is(opened: Browser) -> None:
    """COBALT drops by CoDel's law, too: the chart has the probability of BLUE."""
    opened.choose("#discipline-0", "cobalt")
    play(opened, 1)
    opened.run("lab.sides[0].bins.at(-1).state.blue_probability = 0.1")
    svg, *_ = opened.run(SAVED)
    texts = [node.text for node in ElementTree.fromstring(svg).iter() if node.tag.endswith("text")]
    assert any("COBALT, CAKE: of BLUE alone" in text for text in texts if text), texts


@contextmanager
def serving(given: object, live: Live) -> Iterator[LabServer]:
    """A server of the lab that answers."""
    with LabServer(given, live) as made:
        thread = threading.Thread(target=made.serve_forever)
        thread.start()
        try:
            yield made
        finally:
            made.shutdown()
            thread.join()


@pytest.fixture
def server() -> Iterator[LabServer]:
    rows = [{"link": "down", "delivered": 3}]
    with serving({"toml": [SCENE, SCENE], "names": ["codel", "codel"]}, lambda: rows) as made:
        yield made


def test_the_links_of_an_emulator_are_described_as_it_tells_them(page: Browser) -> None:
    times = itertools.count(1)

    def rows() -> list[dict[str, Any]]:
        row = {"time_s": next(times) / 2, "delivered_bytes": 7500, "rate_bps": 1e6, "marked": 0}
        waits = {"sojourn_p50_s": 0.25, "sojourn_p95_s": 0.4, "backlog_packets": 3}
        down = row | waits | {"link": "down", "direction": "down", "delivered": 5, "dropped": 7}
        idle = {"sojourn_p50_s": None, "sojourn_p95_s": None, "delivered": 0, "dropped": 0}
        return [down, row | waits | idle | {"link": "b", "direction": "up", "backlog_packets": 0}]

    with serving({"live": "my client"}, rows) as made:
        page.problems.clear()
        page.open(made.address)
        page.wait_for("window.lab && lab.time >= 1.5")
        words = [page.text(f"words-{n}") for n in (0, 1)]
        names = page.run("[0, 1].map((n) => lab.scene.names[n])")
        about = page.text("about")
        waiting = page.run("lab.sides[0].queue.length")
        page.open("about:blank")
    wait = "Half of the packets wait at most 250 ms, one in twenty 400 ms or more."
    assert words[0].startswith(f"{wait} In the last second 14 packets were dropped.")
    assert words[1] == "No packet passes. Nothing was dropped or marked in the last second."
    assert (names, waiting) == (["down", "b (up)"], 3)
    assert "my client" in about


def status(address: str, **headers: str) -> int:
    try:
        with urllib.request.urlopen(urllib.request.Request(address, headers=headers)) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_only_who_has_the_address_is_answered(server: LabServer) -> None:
    assert status(server.address) == 200
    assert status(server.address + "live") == 200
    assert status(server.address + "other") == 404
    assert status(server.address.replace(server.token, "guess")) == 403
    assert status(f"http://{server.host}/") == 403
    assert status(server.address, Host="evil.example:80") == 403
    assert status(server.address + "live", Origin="http://evil.example") == 403
    assert server.server_address[0] == "127.0.0.1"


def test_the_server_opens_the_lab_with_a_scenario(page: Browser, server: LabServer) -> None:
    page.problems.clear()
    page.open(server.address)
    page.wait_for("window.meter && meter.ready")
    assert page.run("lab.scene.names") == ["codel", "codel"]
    hidden = page.run("['path', 'flows'].map((id) => document.getElementById(id).hidden)")
    assert hidden == [True, True], "settings that are not those of the scenario"
    page.click("#play")
    page.wait_for("lab.time > 0.5")
    assert page.problems == []


def test_the_command_says_where_the_lab_is_and_what_is_wrong(
    tmp_path: Path, aqmlab: Aqmlab
) -> None:
    (tmp_path / "scene.toml").write_text(SCENE)
    found = aqmlab.json("lab", "--digest", "scene.toml", "--json")
    digest = digest_of(lab.Scenario.from_toml(SCENE))
    assert found == {"file": "scene.toml", "result": digest}
    assert_refused(aqmlab("lab", "scene.toml", "--against", "codell"), "codel")
    assert_refused(aqmlab("lab", "--shell", "no such emulator"), "emulator")


def test_a_run_in_steps_is_the_run_of_the_scenario_that_it_leaves() -> None:
    run = lab.Run(lab.Scenario.from_toml(SCENE))
    run.advance("1s")
    assert run.set("links.bottleneck.rate", "4mbit") == 1.0
    run.advance(2)
    run.set("flows.late", MORE)
    run.set("queue.target", "20ms")
    snapshot = run.snapshot()
    before = run.observe()
    assert before["links"]["bottleneck"]["backlog_packets"] > 0
    assert [flow["group"] for flow in before["flows"]] == ["download"] * 2
    assert all(flow["cwnd_bytes"] > 0 for flow in before["flows"])
    run.advance(3)
    assert [flow["group"] for flow in run.observe()["flows"]] == ["download"] * 2 + ["late"]
    run.restore(snapshot)
    assert run.observe() == before
    assert run.time == snapshot.time == 2
    saved = run.scenario.to_toml()
    result = run.finish()
    again = lab.run(lab.Scenario.from_toml(saved))
    assert again.links.equals(result.links)
    assert again.groups["group"].to_list() == ["download", "late"]
    assert digest_of(lab.Scenario.from_toml(saved)) == run.digest
    assert run.is_over


def test_a_run_goes_back_and_forgets_and_says_what_cannot_be() -> None:
    run = lab.Run(lab.Scenario.from_toml(SCENE), seed=3)
    with pytest.raises(lab.InputError, match="not finished"):
        _ = run.digest
    run.advance(1)
    run.set("queue", "pie")
    run.advance(2)
    run.rewind(0.5)
    assert "changes" in json.loads(run.scenario.resolved)
    run.rewind(0.5, forget=True)
    assert "changes" not in json.loads(run.scenario.resolved)
    first = run.step()
    assert first is not None
    assert run.time == first >= 0.5
    with pytest.raises(lab.InputError, match="cannot change during a run"):
        run.set("seed", 4)
    with pytest.raises(lab.InputError, match="target"):
        run.set("queue.taget", "1ms")
    for time in (-1, float("nan"), float("inf"), 1e11):
        with pytest.raises(lab.InputError, match=r"^time: .*expected seconds from 0"):
            run.advance(time)
    for given in ({"cwnd": -1}, {"cwnd": float("nan")}, {"pacing_rate": 0}, {}):
        with pytest.raises(lab.InputError, match=f"^{next(iter(given), 'cwnd')}: "):
            run.act("download", **given)
    with ThreadPoolExecutor(1) as other, pytest.raises(lab.InputError, match="only in the thread"):
        other.submit(run.advance, 2).result()
    run.finish()
    assert run.is_over and run.digest in repr(run)
    for late in (run.finish, run.fork, lambda: run.advance(3)):
        with pytest.raises(lab.InputError, match="the run is over"):
            late()


def test_a_parameter_keeps_the_state_and_a_replacement_does_not() -> None:
    run = lab.Run(lab.Scenario.from_toml(SCENE))
    run.advance(3)
    while not run.observe()["links"]["bottleneck"]["dropping"]:
        run.step()
    run.set("queue.interval", "90ms")
    run.step()
    assert run.observe()["links"]["bottleneck"]["count"] >= 1
    run.replace("queue", "codel")
    run.step()
    assert run.observe()["links"]["bottleneck"]["count"] == 0
    with pytest.raises(lab.InputError, match=r"queue\.variant: .*replace"):
        run.set("queue.variant", "linux")
    with pytest.raises(lab.InputError, match="only a queue can be replaced"):
        run.replace("links.bottleneck.rate", "1mbit")
    saved = run.scenario.to_toml()
    run.finish()
    assert digest_of(lab.Scenario.from_toml(saved)) == run.digest


def test_the_cost_of_a_change_does_not_grow_with_their_number() -> None:
    run = lab.Run(lab.Scenario.from_toml(SCENE), set={"duration": "1000s"})
    run.advance(1)

    def cost(changes: int) -> float:
        began = process_time()
        for number in range(changes):
            run.set("queue.target", f"{1 + number % 9}ms")
        return process_time() - began

    first, _, last = cost(1000), cost(8000), cost(1000)
    assert last < 5 * first, (first, last)
    assert len(json.loads(run.scenario.resolved)["changes"]) > 9_990


def test_flows_that_change_are_simulated_only(aqmlab: Aqmlab, tmp_path: Path) -> None:
    change = '[[changes]]\nat = "1s"\nkey = "flows.download.active"\nvalue = false\n'
    (tmp_path / "scene.toml").write_text(SCENE + change)
    aqmlab.ok("run", "scene.toml")
    refused = aqmlab("parity", "scene.toml")
    assert_refused(refused, "changes.flows.download.active", "simulation only")
