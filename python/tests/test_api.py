"""The Python interface: types, shapes, joins, laziness."""

from __future__ import annotations

import copy
import errno
import json
import pickle
from importlib import import_module
from pathlib import Path
from typing import Any

import cloudpickle
import polars as pl
import pytest

import aqmlab
from aqmlab import _core
from aqmlab.results import RunResult, run_of
from aqmlab.study.runner import finished
from aqmlab.study.sweep import TAKEN, UNITS


def test_run_takes_a_file_a_mapping_or_a_scenario(scenario: Path, mapping: dict[str, Any]) -> None:
    from_file = aqmlab.run(scenario)
    again = aqmlab.run(aqmlab.Scenario.read(scenario))
    assert from_file.links.equals(again.links)
    assert aqmlab.run(str(scenario)).flows.equals(from_file.flows)
    assert aqmlab.run(mapping).flows["group"].to_list() == ["bulk", "bulk"]
    study = aqmlab.Study(aqmlab.Scenario.read(scenario).check())
    assert study.run().raw("links").drop("run").equals(from_file.links)
    assert from_file.bottleneck == "down"
    assert from_file.scenario["duration"] == "20s"


@pytest.mark.parametrize("start", [aqmlab.run, aqmlab.Run, aqmlab.Study])
def test_what_is_no_scenario_is_refused(start: Any) -> None:
    for given in (None, 7):
        with pytest.raises(aqmlab.InputError, match=f"source: `{given}`: expected a path"):
            start(given)


def test_wrong_arguments_are_named(mapping: dict[str, Any], study: Path, tmp_path: Path) -> None:
    any_: Any = aqmlab
    with pytest.raises(aqmlab.InputError, match=r"set: `'queue=codel'`: expected a mapping"):
        any_.run(mapping, set="queue=codel")
    for seed in ("7", True, 1.0, -1):
        with pytest.raises(aqmlab.InputError, match=f"^seed: `{seed}`: expected a whole number"):
            any_.run(mapping, seed=seed)
    with pytest.raises(aqmlab.InputError, match=r"record: `5`: expected a mapping"):
        any_.run(mapping, record=5)
    for given in ("queue=CoDel", ["queue=CoDel"]):
        with pytest.raises(aqmlab.InputError, match=r"only: .*: expected a mapping"):
            any_.Study(study, only=given)
    for arguments in ({"set": "queue=codel"}, {"seed": "7"}):
        with pytest.raises(aqmlab.InputError, match=rf"^{next(iter(arguments))}: "):
            any_.Run(mapping, **arguments)
    with pytest.raises(aqmlab.InputError, match=r"^set: `queue`: the axis `queue`"):
        aqmlab.Study(study, set={"queue": "pie"})
    with pytest.raises(aqmlab.InputError, match=r"^precision: `5`"):
        aqmlab.Study(study, precision="5")
    with pytest.raises(aqmlab.InputError, match=r"^pcap_links: `dwn`: unknown link"):
        aqmlab.run(mapping, pcap=tmp_path / "x", pcap_links="dwn")
    with pytest.raises(TypeError, match=r"PathLike"):
        any_.run(mapping, pcap=5)
    with pytest.raises(aqmlab.InputError, match=r"^folders: "):
        aqmlab.compare({})
    with pytest.raises(aqmlab.InputError, match=r"^rtt: `40`: expected a time"):
        aqmlab.Scenario.dumbbell("20mbit", "40", bulk=1)
    for scale in (0, -1, float("nan")):
        with pytest.raises(aqmlab.InputError, match=r"^scale: "):
            aqmlab.characterize("codel", scale=scale)
    with pytest.raises(aqmlab.InputError, match=r"^transport: "):
        any_.evaluate("cubic", transport="ecn=off")
    with pytest.raises(aqmlab.InputError, match=r"^folder: "):
        aqmlab.Study({"scenario": mapping}).run().write_report()
    with pytest.raises(aqmlab.InputError, match=r"^shard: `x`"):
        aqmlab.Shard.parse("x")
    for arguments, told in (
        ({"only": "x"}, "only: `x`"),
        ({"beside": "queue=CoDel"}, "beside: `queue=CoDel`: the study has"),
        ({"trace": "nowhere"}, "trace: `nowhere`"),
        ({"step": "5s"}, "step: `5s`: this needs emulate"),
        ({"step": "x", "emulate": True, "out": tmp_path / "x"}, "step: `x`"),
    ):
        with pytest.raises(aqmlab.InputError, match=f"^{told}"):
            any_.reproduce("cs244_2015", **arguments)


def test_one_name_stands_for_a_sequence_of_it() -> None:
    with pytest.raises(aqmlab.InputError, match=r"only: `8.9`: unknown section"):
        aqmlab.characterize("codel", only="8.9")
    with pytest.raises(aqmlab.InputError, match=r"against: `codle`"):
        aqmlab.characterize("codel", against="codle")
    with pytest.raises(aqmlab.InputError, match=r"only: `lone`: unknown criterion"):
        aqmlab.evaluate("cubic", only="lone")
    with pytest.raises(aqmlab.FolderError, match=r"^nowhere: "):
        aqmlab.merge("nowhere", "out")
    with pytest.raises(aqmlab.InputError, match=r"keys: `queue.target`: expected LOW..HIGH"):
        aqmlab.search.tune({}, "queue.target", ["min:sojourn_p95"])


def test_queues_are_tried_on_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("aqmlab.packs.access_line.trial"), "WORK", 1e6)
    found = aqmlab.try_line("fq_codel", profile="dsl", load="gaming", rules="call.mos > 1")
    assert found.queues == ["droptail", "fq_codel"]
    (rule,) = found.answers["", "fq_codel"]
    assert rule.verdict == "holds" and found.result.info.replications >= 2
    for given, told in (
        ({}, r"^down: this value is missing .*profiles"),
        ({"profile": "dls"}, r"^profile: `dls`: unknown profile"),
        ({"profile": "dsl", "load": "hom"}, r"^load: `hom`"),
        ({"profile": "dsl", "shape": 2}, r"^shape: `2`"),
        ({"profile": "dsl", "rules": "mos > 4"}, r"^rules: `mos`"),
        ({"profile": "dsl", "device": "a b"}, r"^device: `a b`"),
        ({"profile": "dsl", "queues": "codle"}, r"^queues: `codle`"),
    ):
        with pytest.raises(aqmlab.InputError, match=told):
            aqmlab.try_line(**{"queues": "codel", **given})  # type: ignore[arg-type]


def test_run_takes_settings_seed_and_record(mapping: dict[str, Any]) -> None:
    result = aqmlab.run(mapping, set={"queue.target": "2ms"}, seed=9, record="series")
    assert result.scenario["links"]["down"]["queue"]["target"] == "2ms"
    assert result.runs["seed"].to_list() == [9]
    assert result.series.height > 0
    finer = aqmlab.run(mapping, record={"level": "series", "interval": "10ms"})
    assert finer.series.height > 5 * result.series.height
    with pytest.raises(aqmlab.InputError, match="`interval`"):
        aqmlab.run(mapping, record={"intervall": "10ms"})


def test_tables_are_polars_without_the_column_run(mapping: dict[str, Any]) -> None:
    result = aqmlab.run(mapping, record="packets")
    for name in result.table_names:
        table = result.table(name)
        assert isinstance(table, pl.DataFrame)
        assert "run" not in table.columns
        assert pl.Categorical not in table.dtypes
    assert result.packets.height >= result.links["delivered"].sum()
    with pytest.raises(aqmlab.InputError, match="did you mean `links`"):
        result.table("link")


def test_parts_have_all_columns_or_those_asked_for(study: Path, tmp_path: Path) -> None:
    for result in (aqmlab.Study(study).run(), aqmlab.Study(study).run(tmp_path / "out")):
        assert pl.concat(result.parts("links")).equals(result.raw("links"))
        assert next(result.parts("links", "link", "run")).columns == ["link", "run"]
        with pytest.raises(aqmlab.InputError, match="did you mean `marked`"):
            result.parts("links", "markd")
        part = pl.concat(run_of(result, 3).parts("links"))
        assert part.equals(result.raw("links").filter(run=3))


def test_results_of_a_study_are_joined_with_its_points(study: Path) -> None:
    result = aqmlab.Study(study).run()
    assert result.points.columns == ["point", "queue", "flows", "flows_value"]
    assert result.points.height == 6
    first = ["run", "point", "replication", "queue", "flows", "flows_value"]
    assert result.links.columns[:6] == first
    flows = result.flows.group_by("run", "queue", "flows").len().sort("run")
    assert flows["queue"].to_list() == ["CoDel"] * 6 + ["DropTail"] * 6
    first = pl.col("flows").cast(pl.String).cast(pl.UInt32)
    assert flows.filter(pl.col("len") != first + 1).is_empty()
    assert result.bottleneck["link"].unique().to_list() == ["down"]
    assert result.bottleneck.height == 12
    assert result.points["flows"].dtype == pl.Enum(["1", "2", "4"])


def test_points_are_paired_by_replication(study: Path) -> None:
    starts = aqmlab.Study(study).run().flows.filter(group="second", index=0)
    for _, group in starts.group_by("replication"):
        assert group["start_s"].n_unique() == 1
    assert starts["start_s"].n_unique() == 2


def test_a_study_can_be_a_mapping(mapping: dict[str, Any]) -> None:
    study = aqmlab.Study(
        {"scenario": mapping, "axes": [{"key": "queue.target", "values": ["2ms", "5ms"]}]},
        replications=3,
        seed=8,
        set={"duration": "1s"},
    )
    assert (study.name, study.total, study.seed) == ("study", 6, 8)
    assert [point.labels for point in study.points] == [{"target": "2ms"}, {"target": "5ms"}]
    seen: list[tuple[int, int]] = []
    result = study.run(progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (6, 6)
    assert result.runs["seed"].unique().to_list() == [8]
    assert result.runs["replication"].to_list() == [0, 1, 2, 0, 1, 2]
    assert result.info.points == 2


def test_a_study_can_be_cut_down_to_some_labels(study: Path) -> None:
    whole, part = aqmlab.Study(study), aqmlab.Study(study, only={"flows": ["4", "1"]})
    assert part.total == 8
    assert [point.labels["flows"] for point in part.points] == ["1", "4", "1", "4"]
    assert part.digest != whole.digest
    same = part.run().raw("links").filter(run=7).drop("run")
    assert same.equals(whole.run().raw("links").filter(run=11).drop("run"))
    with pytest.raises(aqmlab.InputError, match="did you mean `CoDel`"):
        aqmlab.Study(study, only={"queue": ["codel"]})
    with pytest.raises(aqmlab.InputError, match="unknown axis"):
        aqmlab.Study(study, only={"rate": ["1"]})
    more = aqmlab.Study(study, only={"flows": "8"}, add={"flows": "8"})
    assert {point.labels["flows"] for point in more.points} == {"8"}


def test_the_digest_is_of_all_that_matters(study: Path, mapping: dict[str, Any]) -> None:
    def digest(**changes: Any) -> str:
        return aqmlab.Study(study, **changes).digest

    same = [digest(), digest(), digest(seed=3), digest(set={"links.down.rate": "2000kbit"})]
    assert len(set(same)) == 1
    others = [digest(seed=4), digest(replications=1), digest(set={"duration": "9s"})]
    assert len({*same, *others}) == 4


@pytest.mark.parametrize("key", ["queue.limit", "down.queue.limit", "links.down.queue.limit"])
def test_axes_and_settings_reach_a_queue_by_every_name(study: Path, key: str) -> None:
    text = study.read_text()
    count = '[[axes]]\nkey = "flows.first.count"\nname = "flows"\nvalues = [1, 2, 4]\n'
    study.write_text(text.replace(count, f'[[axes]]\nkey = "{key}"\nvalues = ["7p", "9p"]\n'))
    assert count in text

    def limits(**settings: Any) -> list[str]:
        points = aqmlab.Study(study, **settings).points
        return [json.loads(each.scenario.resolved)["links"]["down"]["queue"]["limit"]
                for each in points]  # fmt: skip

    assert limits() == ["7p", "9p"] * 2
    study.write_text(text)
    assert set(limits(set={key: "5p"})) == {"5p"}


@pytest.mark.parametrize(
    ("own", "given", "expected"),
    [
        ({}, {"seed": 7}, (None, "seed", "7")),
        ({"seed": 3}, {}, ("<study>", "seed", "3")),
        ({"seed": 3}, {"seed": 7}, (None, "seed", "7")),
        ({}, {"set": {"seed": 7}}, (None, "set", "seed")),
    ],
)
def test_a_seed_is_no_second_one_beside_an_axis_of_seeds(
    mapping: dict[str, Any],
    own: dict[str, Any],
    given: dict[str, Any],
    expected: tuple[str | None, str, str],
) -> None:
    axes = [{"name": "draw", "key": "seed", "values": [1, 2]}]
    with pytest.raises(aqmlab.InputError, match="the axis `draw` of this study sets it") as caught:
        aqmlab.Study({"scenario": mapping, "axes": axes, **own}, **given)
    assert (caught.value.file, caught.value.key, caught.value.given) == expected


def test_no_axis_may_be_called_like_a_column(mapping: dict[str, Any]) -> None:
    result = aqmlab.run(mapping)
    for name in (*result.table_names, "metrics"):
        for column in result.table(name).columns:
            taken = column in TAKEN or column.endswith(UNITS)
            assert taken or column.startswith(("drop_", "mark_")), column


def test_errors_have_parts() -> None:
    with pytest.raises(aqmlab.InputError) as caught:
        aqmlab.Study({"scenario": {}, "axis": []})
    error = caught.value
    assert (error.file, error.given, error.hint) == ("<study>", "axis", "did you mean `axes`?")
    with pytest.raises(aqmlab.InputError) as caught:
        aqmlab.run({"links": {"a": {"rate": "5"}}})
    assert caught.value.key == "links.a.rate"
    assert isinstance(caught.value, ValueError)


def test_results_errors_and_functions_can_be_sent_to_other_processes(
    mapping: dict[str, Any],
) -> None:
    run = aqmlab.run(mapping, record="packets")
    for sent in (pickle.loads(pickle.dumps(run)), copy.deepcopy(run)):
        assert sent.table_names == run.table_names
        assert all(sent.table(name).equals(run.table(name)) for name in run.table_names)
    stuck = aqmlab.StuckError({3: "no progress"})
    stuck.failed[0] |= {"point": {"queue": "pie"}, "replication": 1}
    stuck.args = ("two runs were kept",)
    full = aqmlab.StorageError(OSError(errno.ENOSPC, ""), Path("out"), "kept", resumes=False)
    with pytest.raises(aqmlab.InputError) as wrong:
        aqmlab.run({})
    for error in (stuck, full, wrong.value):
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), again.args) == (type(error), str(error), error.args)
    for module in (aqmlab, aqmlab.metrics):
        assert pickle.loads(cloudpickle.dumps(module)) is module


def test_tables_of_a_run_do_not_read_its_scenario(mapping: dict[str, Any]) -> None:
    class Unread:
        @property
        def resolved(self) -> str:
            raise AssertionError

    batches = list(finished([(0, _core.Scenario(mapping), 0)], threads=1))
    result = RunResult.of(batches, Unread())  # type: ignore[arg-type]
    assert result.links.height == len(mapping["links"])


@pytest.mark.parametrize("threads", [0, 1.5, True, "two"])
def test_threads_are_a_whole_number(mapping: dict[str, Any], threads: Any) -> None:
    with pytest.raises(aqmlab.InputError, match=r"threads: .*: expected a whole number from 1"):
        aqmlab.Study({"scenario": mapping}).run(threads=threads)


def test_the_module_lists_what_it_offers() -> None:
    assert set(dir(aqmlab)) == set(aqmlab.__all__)
    for name in aqmlab.__all__:
        assert getattr(aqmlab, name) is not None
    with pytest.raises(AttributeError):
        aqmlab.nothing  # noqa: B018


def test_workloads_say_what_they_did(mapping: dict[str, Any]) -> None:
    calls = {"path": ["down"], "return_path": ["up"], "workload": "voip"}
    web = {
        "path": ["down"],
        "return_path": ["up"],
        "workload": {"kind": "transfers", "gap": {"exponential": "50ms"}, "size": "10kb"},
    }
    result = aqmlab.run({**mapping, "flows": {"calls": calls, "web": web}})
    web_row = result.groups.row(by_predicate=pl.col("group") == "web", named=True)
    assert web_row["started"] >= web_row["completed"] > 50
    assert web_row["completed_bytes"] == 10_240 * web_row["completed"]
    kinds = set(result.times.select("group", "quantity").iter_rows())
    assert kinds == {("calls", "delay"), ("web", "startup"), ("web", "completion")}
    assert set(result.scores["quantity"]) == {"mos", "r_factor", "lost", "late"}
    assert result.flows["datagrams_received"].min() > 0
