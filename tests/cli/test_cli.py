"""The command line as its users see it: real files, exit codes, one line for an error."""

import csv
import fcntl
import io
import json
import os
import pty
import re
import signal
import socket
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import jsonschema
import numpy as np
import pandas as pd
import pytest

import tensorlace
from tensorlace.cli import files, output, rivals
from tensorlace.cli.app import run
from tensorlace.cli.commands import compare, demo
from tensorlace.cli.commands.compare import judge
from tensorlace.cli.schema import schema_of
from tensorlace.cli.scores import score, verdict
from tensorlace.search.task import Progress
from tensorlace.sources.files import read_frame

N = 80
PREDICTED = ("mean", "std", "lower", "upper", "novelty", "unlike")
SHOPS = ("a, b", 'say "hi"', "=cmd()")


def make_table(seed=0):
    rng = np.random.default_rng(seed)
    x, shop = rng.uniform(0, 1, N), rng.integers(3, size=N)
    price = np.sin(4 * x) + shop + 0.1 * rng.standard_normal(N)
    frame = pd.DataFrame(
        {
            "x": x,
            "shop": [SHOPS[k] for k in shop],
            "day": pd.date_range("2026-01-01", periods=N).strftime("%Y-%m-%d"),
            "code": [f"{k % 2:03d}" for k in range(N)],
            "open": [k % 3 == 0 for k in range(N)],
            "price": price,
        }
    )
    frame.loc[3, "x"] = np.nan
    frame.loc[4, ["shop", "day"]] = None
    frame.loc[5, "price"] = np.nan
    return frame


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    frame = make_table()
    frame.to_csv(folder / "data.csv", index=False, quoting=csv.QUOTE_NONNUMERIC)
    frame.to_parquet(folder / "data.parquet")
    return folder


class Result:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    @property
    def json(self):
        assert self.code == 0, self.err
        return json.loads(self.out)

    @property
    def error(self):
        """The one line of a command that failed."""
        assert self.code in (1, 2), (self.code, self.out, self.err)
        assert self.err.startswith("error: ")
        assert self.err.count("\n") == 1
        assert "Traceback" not in self.err
        return self.err.strip()


@pytest.fixture
def tl(folder, monkeypatch, capfd):
    """Run a command in this process: importing everything anew takes the longest."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "80")
    before = signal.getsignal(signal.SIGINT)

    def call(*args):
        monkeypatch.setattr(sys, "argv", ["tensorlace", *map(str, args)])
        with pytest.raises(SystemExit) as end:
            run()
        out, err = capfd.readouterr()
        return Result(end.value.code, out, err)

    yield call
    signal.signal(signal.SIGINT, before)


def environment(**more):
    source = str(Path(tensorlace.__file__).parents[1])
    return {**os.environ, "PYTHONPATH": source, "COLUMNS": "80", "OMP_NUM_THREADS": "1", **more}


def command(*args, **how):
    """Run a command in a process of its own."""
    words = [sys.executable, "-m", "tensorlace.cli", *map(str, args)]
    how = {"capture_output": True, "env": environment(), **how}
    return subprocess.run(words, check=False, **how)


@pytest.fixture(scope="module")
def model(folder):
    """A model file by the command line, and what it printed."""
    options = ["--rank", "2", "--columns", "code=categorical", "--note", "who=me"]
    words = ["fit", "data.csv", "--target", "price", "-o", "model.tlace", *options]
    done = command(*words, cwd=folder, text=True)
    assert done.returncode == 0, done.stderr
    return folder / "model.tlace", done


def test_no_products(folder):
    words = ["fit", "data.csv", "--target", "price", "-o", "sum.tlace", "--rank", "0"]
    done = command(*words, cwd=folder, text=True)
    assert done.returncode == 0, done.stderr
    cores = tensorlace.load(folder / "sum.tlace").machines_[0].fit.cores
    assert [len(V) for V in cores[-2:]] == [0, 1]


def valid(name, content):
    jsonschema.validate(content, json.loads(schema_of(name)))
    return content


def test_fit(model):
    path, done = model
    assert done.stderr.splitlines()[0] == "left out 1 row without a target"
    assert "Fitted 1 member to 71 rows" in done.stdout
    assert "8 rows kept for a test" in done.stdout
    assert re.search(r"^RMSE +0\.\d+ +typical error", done.stdout, re.M)
    assert re.search(r"^Accuracy: \w+", done.stdout, re.M)
    assert max(map(len, done.stdout.splitlines())) <= 80
    fitted = tensorlace.load(path)
    assert list(fitted.feature_names_in_) == ["x", "shop", "day", "code", "open"]
    kinds = [type(k).__name__ for k in fitted.kinds_.values()]
    assert kinds == ["Numeric", "Categorical", "Datetime", "Categorical", "Numeric"]
    assert fitted.verbose == 0


def test_the_outcome_of_the_test_is_in_the_model(tl, folder):
    words = ("fit", "data.csv", "-t", "price", "--rank", "1", "--test-share", "0.25")
    said = valid("fit", tl(*words, "-o", "quarter.tlace", "--json").json)["test"]
    fitted = tensorlace.load(folder / "quarter.tlace").fitted_model()
    kept = fitted.record.held_back
    assert kept.n_rows == said["rows"] == 20
    for key in ("rmse", "r2", "nll", "crps", "level", "coverage", "width"):
        assert getattr(kept, key) == said[key], key
    assert (kept.n_unlike, kept.contradicted) == (said["unlike"], said["contradicted"])
    assert kept.message == said["message"]
    # the same rows once more, drawn and scored by hand
    frame = make_table()
    known = frame[frame["price"].notna()].reset_index(drop=True)
    known["day"] = pd.to_datetime(known["day"])
    known["code"] = known["code"].astype(int)
    rows = known.iloc[np.sort(np.random.default_rng(0).permutation(N - 1)[:20])]
    X = fitted.encode(rows.drop(columns="price"))
    away = rows["price"] - fitted.mean(X)
    assert kept.rmse == pytest.approx(float(np.sqrt(np.mean(away**2))), rel=1e-12)
    lower, upper = fitted.interval(fitted.dist(X), 0.95)
    assert kept.coverage == np.mean((lower <= rows["price"]) & (rows["price"] <= upper))
    assert kept.n_unlike == int(fitted.extrapolated(X).sum())
    none = tl(*words[:-1], "0", "-o", "all.tlace", "--json").json
    assert none["test"] is None
    assert tensorlace.load(folder / "all.tlace").fitted_model().record.held_back is None


def test_predict_adds_columns_and_keeps_the_rest(tl, model, folder):
    path, _ = model
    result = tl("predict", path, "data.csv", "-o", "out.csv", "--coverage", "0.8")
    assert (result.code, result.out) == (0, "")
    with open(folder / "data.csv", newline="") as a, open(folder / "out.csv", newline="") as b:
        before, after = list(csv.reader(a)), list(csv.reader(b))
    assert after[0] == [*before[0], *PREDICTED]
    assert len(after) == N + 1
    for old, new in zip(before[1:], after[1:], strict=True):
        assert [cell.removeprefix("'") for cell in new[:6]] == old
    assert {row[1] for row in after[1:]} == {"a, b", 'say "hi"', "'=cmd()", ""}
    fitted, frame = tensorlace.load(path), make_table()
    frame["day"] = pd.to_datetime(frame["day"])
    frame["code"] = frame["code"].astype(int)
    dist = fitted.predict_dist(frame.drop(columns="price"))
    novelty = fitted.novelty(frame.drop(columns="price"))
    got = np.array([row[6:11] for row in after[1:]], dtype=float)
    want = (dist.mean, dist.std, *dist.interval(0.8), novelty.measure)
    assert np.array_equal(got, np.column_stack(want))
    assert [row[11] for row in after[1:]] == list(novelty.reasons)


def test_predict_gives_calibrated_intervals(tl, model, folder):
    frame = make_table()
    frame["day"] = pd.to_datetime(frame["day"])
    frame["code"] = frame["code"].astype(int)
    X, y = frame.drop(columns="price"), frame["price"]
    known = y.notna().to_numpy()
    fitted = tensorlace.load(model[0]).calibrate(X[known], y[known])
    tensorlace.save(fitted, folder / "calibrated.tlace")
    said = json.loads(tl("predict", "calibrated.tlace", "data.csv", "--json").out)["predictions"]
    lower, upper = fitted.predict_interval(X, 0.9)
    assert np.array_equal([row["lower"] for row in said], lower)
    assert np.array_equal([row["upper"] for row in said], upper)
    assert not np.array_equal(lower, fitted.predict_dist(X).interval(0.9)[0])


def test_predict_to_parquet_json_and_from_parquet(tl, model, folder):
    path, _ = model
    assert tl("predict", path, "data.parquet", "-o", "out.parquet").code == 0
    out = pd.read_parquet(folder / "out.parquet")
    assert tuple(out.columns)[-6:] == PREDICTED
    assert out["shop"].tolist()[:3] == make_table()["shop"].tolist()[:3]
    content = valid("predict", tl("predict", path, "data.csv", "--json").json)
    assert content["rows"] == len(content["predictions"]) == N
    assert [row["mean"] for row in content["predictions"]] == out["mean"].tolist()


def test_predict_with_names_that_are_taken_and_shuffled_columns(tl, model, folder):
    path, _ = model
    frame = make_table().assign(std=1.0, more="x")
    frame = frame[["more", "std", "open", "code", "day", "shop", "x"]]
    frame.loc[0, "shop"] = "never seen"
    frame.to_csv(folder / "new.csv", index=False, sep=";")
    result = tl("predict", path, "new.csv")
    assert "predictions are predicted_mean, predicted_std" in result.err
    assert "1 of 80 rows unlike those of training, most often by shop (1 row)" in result.err
    header = next(csv.reader(io.StringIO(result.out)))
    assert header == [
        *frame.columns,
        *(f"predicted_{n}" for n in PREDICTED),
    ]
    rows = list(csv.reader(io.StringIO(result.out)))[1:]
    reasons = [row[-1] for row in rows]
    assert reasons == ["shop has a value that no training row had", *[""] * (N - 1)]
    assert [float(row[-2]) > 1.0 for row in rows] == [reason != "" for reason in reasons]


def test_categories_that_look_like_numbers(tl, folder):
    frame = make_table()
    frame["code"] = [("a1", "007", "7")[k % 3] for k in range(N)]
    frame.to_csv(folder / "codes.csv", index=False)
    words = ("fit", "codes.csv", "-t", "price", "--rank", "1", "--test-share", "0", "--json")
    valid("fit", tl(*words).json)
    some = frame[frame["code"] == "007"]
    some.to_csv(folder / "some.csv", index=False)
    content = tl("predict", "codes.tlace", "some.csv", "--json").json
    assert content["extrapolated"] == 0
    fitted = tensorlace.load(folder / "codes.tlace")
    some = some.assign(day=pd.to_datetime(some["day"]))
    expected = fitted.predict_dist(some.drop(columns="price")).mean.tolist()
    assert [row["mean"] for row in content["predictions"]] == expected


def test_numbers_that_are_categories_meet_new_text(tl, model, folder):
    path, _ = model  # its column "code" has the categories 0 and 1
    frame = make_table().drop(columns="price")
    frame.to_csv(folder / "a.csv", index=False)
    frame.loc[0, "code"] = "new"
    frame.to_csv(folder / "b.csv", index=False)
    a, b = (tl("predict", path, name, "--json").json for name in ("a.csv", "b.csv"))
    assert (a["extrapolated"], b["extrapolated"]) == (0, 1)
    assert b["predictions"][0]["novelty"] > 1.0 >= a["predictions"][0]["novelty"]
    assert b["predictions"][0]["unlike"] == "code has a value that no training row had"
    assert a["predictions"][0]["unlike"] == ""
    assert a["predictions"][1:] == b["predictions"][1:]


def test_evaluate(tl, model):
    path, _ = model
    content = valid("evaluate", tl("evaluate", path, "data.csv", "--json").json)
    assert content["rows"] == N - 1
    assert content["rows_without_target"] == 1
    assert content["target"] == "price"
    frame = make_table().dropna(subset="price")
    frame["day"], frame["code"] = pd.to_datetime(frame["day"]), frame["code"].astype(int)
    dist = tensorlace.load(path).predict_dist(frame.drop(columns="price"))
    expected = tensorlace.metrics.summary(frame["price"], dist)
    names = {"rmse": "rmse", "nll": "nll", "crps": "crps", "ecp95": "coverage", "wcpi95": "width"}
    for theirs, ours in {**names, "rce": "rce"}.items():
        assert content[ours] == pytest.approx(expected[theirs], rel=1e-12)
    variance = np.var(frame["price"])
    assert content["r2"] == pytest.approx(1 - expected["rmse"] ** 2 / variance, rel=1e-12)
    assert (content["extrapolated"], content["unlike"]) == (0, None)
    frame = make_table()
    frame.loc[:2, "shop"], frame.loc[6, "x"] = "new", 3.0
    frame.to_csv("strange.csv", index=False)
    content = valid("evaluate", tl("evaluate", path, "strange.csv", "--json").json)
    assert (content["extrapolated"], content["unlike"]) == (4, "shop (3 rows)")
    said = " ".join(tl("evaluate", path, "strange.csv").out.split())
    assert "Beware: 4 rows unlike those of training, mostly by shop (3 rows)." in said
    result = tl("evaluate", path, "data.csv", "--coverage", "0.5")
    assert result.code == 0
    assert "coverage 50%" in result.out
    assert max(map(len, result.out.splitlines())) <= 80


def test_inspect(tl, model):
    path, _ = model
    content = valid("inspect", tl("inspect", path, "--json").json)
    assert content["notes"]["target"] == "price"
    assert content["notes"]["who"] == "me"
    assert content["rows"] == 71
    assert {c["name"]: c["levels"] for c in content["columns"]}["shop"] == 3
    assert content["members"][0]["rank"] == 2
    assert content["bytes"] == path.stat().st_size
    assert content["held_out"] is None
    assert content["held_back"]["n_rows"] == 8
    assert content["held_back"]["rmse"] == content["notes"]["test_rmse"]
    assert content["rows_in_file"] == 71
    result = tl("inspect", path)
    assert "8 rows held back for a test; " in result.out
    assert "71 training rows in the file" in result.out
    assert max(map(len, result.out.splitlines())) <= 80
    assert re.search(r"^shop +Categorical\(\) +3$", result.out, re.M)


def test_weights_kinds_and_drops(tl, folder):
    frame = make_table().assign(w=np.arange(N) % 3, hour=np.arange(N) % 24)
    frame["size"] = [("S", "M", "L")[k % 3] for k in range(N)]
    frame.to_csv(folder / "more.csv", index=False)
    options = ["--columns", "hour=periodic:24", "--columns", "size=ordinal:S,M,L", "--drop", "day"]
    words = ["fit", "more.csv", "-t", "price", "--rank", "1", "--weight", "w", "--seed", "3"]
    content = valid("fit", tl(*words, *options, "--json").json)
    assert content["columns"]["hour"] == "Periodic(period=24.0)"
    assert content["columns"]["size"] == "Ordinal(order=('S', 'M', 'L'))"
    assert not {"w", "day", "price"} & content["columns"].keys()
    first = _timeless(folder / "more.tlace")
    tl(*words, *options, "--json")
    assert _timeless(folder / "more.tlace") == first
    wrong = tl(*words[:-2], "--weight", "size").error
    assert wrong == "error: weight column 'size' has 'S' in row 1"


def test_meaning_of_weights(tl, folder):
    make_table().assign(w=1e-3 * (1.0 + np.arange(N) % 3)).to_csv(folder / "small.csv", index=False)
    words = ["fit", "small.csv", "-t", "price", "--rank", "1", "--weight", "w", "--test-share", "0"]
    assert "scaled to sum to" in tl(*words).err
    assert "scaled" not in tl(*words, "--weights", "relative", "-o", "relative.tlace").err
    a, b = (tensorlace.load(folder / f"{name}.tlace") for name in ("small", "relative"))
    assert a.noise_precision_ == b.noise_precision_
    assert "fewer than 2" in tl(*words, "--weights", "repetitions").error
    wrong = tl(*words, "--weights", "all").err
    assert "'all' is not one of auto, relative, repetitions" in " ".join(wrong.split())


def _timeless(path):
    """All of a model file but the seconds that the fit took and the checksum at its end."""
    seconds = rb'\\"seconds\\":[0-9.]+,'
    content, found = re.subn(seconds, b"", path.read_bytes()[:-32])
    assert found == 1
    return content


def test_rows_can_be_left_out_of_the_file(tl, folder):
    tl("fit", "data.csv", "-t", "price", "--rank", "1", "-o", "few.tlace", "--forget-rows")
    assert tl("inspect", "few.tlace", "--json").json["rows_in_file"] == 0
    assert "no training rows in the file" in tl("inspect", "few.tlace").out
    assert tl("predict", "few.tlace", "data.csv").code == 0


class Bar:
    """Stands for a bar of rich and remembers where it was."""

    def __init__(self):
        self.states = []

    def update(self, task, *, description, total, completed):
        self.states.append((description, completed / total))


def moved(capsys, **params):
    """States of the bar while a model is fitted."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(60, 2))
    y = X[:, 0] * X[:, 1] + 0.1 * rng.standard_normal(60)
    tensorlace.TNKMRegressor(verbose=2, random_state=0, n_jobs=2, **params).fit(X, y)
    bar = Bar()
    steps = output._Steps(bar, None, "")
    for line in capsys.readouterr().err.splitlines():
        steps.write(line)
    return bar.states


def test_the_bar_follows_a_search(capsys, monkeypatch):
    """By the share of the budget that the cost model says fits have taken, whatever was planned."""
    spent = []
    fitted = Progress.fitted

    def kept(self, candidate, width, n_rows):
        fitted(self, candidate, width, n_rows)
        spent.append(self.spent / self._work)

    monkeypatch.setattr(Progress, "fitted", kept)
    states = moved(capsys, time_budget=3)
    trying = [share for what, share in states if what == "trying models"]
    best = [share for what, share in states if what == "fitting the best"]
    assert len(trying) >= 15  # each of three candidates, whatever the machine, in five folds
    assert trying == [float(f"{min(share, 1.0):.0%}"[:-1]) / 100 for share in spent]
    assert trying == sorted(trying)
    assert trying[0] < trying[-1]
    assert best == [k / len(best) for k in range(1, len(best) + 1)]
    assert states[len(trying) :] == [("fitting the best", share) for share in best]


def test_the_bar_follows_a_single_fit(capsys):
    states = moved(capsys, rank=2, max_sweeps=50, tol=1e-3)
    assert states == [("fitting", k / 50) for k in range(1, len(states) + 1)]
    assert len(states) >= 3


def test_a_model_that_chooses_itself_and_comparison(tl, monkeypatch):
    pair = ("exact GP", "BayesianRidge")
    few = {name: rival for name, rival in rivals.rivals(1000).items() if name in pair}
    monkeypatch.setattr(compare, "rivals", lambda rows: few)
    content = valid(
        "fit", tl("fit", "data.csv", "-t", "price", "--time-budget", "0.1", "--json").json
    )
    assert content["model"] == "data.tlace"
    assert content["members"] >= 1
    held_out = valid("inspect", tl("inspect", "data.tlace", "--json").json)["held_out"]
    assert held_out["n_rows"] == 71
    shown = tl("inspect", "data.tlace").out
    assert re.search(
        r"^71 rows held out: log score -?\d.*, \d+\.\d% in 95% intervals$", shown, re.M
    )
    assert max(map(len, shown.splitlines())) <= 80
    words = ("compare", "data.csv", "-t", "price", "--rank", "1", "--splits", "2", "--json")
    content = valid("compare", tl(*words).json)
    assert {"tensorlace", "exact GP", "BayesianRidge"} <= content["models"].keys()
    assert content["verdict"][0].startswith("By CRPS ")
    assert content["failures"] == {}


def test_comparison_in_words(tl, monkeypatch):
    def broken(*args):
        raise RuntimeError("out of\nluck")

    few = {"BayesianRidge": rivals.rivals(10)["BayesianRidge"], "other": broken}
    monkeypatch.setattr(compare, "rivals", lambda rows: few)
    result = tl("compare", "data.csv", "-t", "price", "--rank", "1", "--splits", "1")
    assert result.code == 0
    assert "other failed: RuntimeError: out of luck" in result.err
    assert "mean of 1 splits: 63 rows to fit, 16 to test" in result.out
    assert max(map(len, result.out.splitlines())) <= 80


def test_judge():
    def splits(**values):
        return {
            n.replace("_", " "): [{"crps": v, "nll": v} for v in vs] for n, vs in values.items()
        }

    better = judge(splits(tensorlace=[2.0, 2.1], exact_GP=[1.0, 1.1], third=[9.0, 9.0]))
    assert better[0].startswith(
        "By CRPS exact GP is better: 1.05, tensorlace has 2.05 (better on 0"
    )
    close = judge(splits(tensorlace=[2.0, 1.0], exact_GP=[1.0, 2.0]))
    assert "too close to tell apart (better on 1 of 2 splits)" in close[0]
    assert (
        "too close" in judge(splits(tensorlace=[2.0], exact_GP=[1.0]))[0]
    )  # one split tells little
    assert judge(splits(tensorlace=[1.0])) == []
    only = judge({**splits(tensorlace=[1.0, 1.0]), "q": [{"crps": 2.0, "nll": np.nan}] * 2})
    assert len(only) == 1


def test_verdict():
    def words(r2, coverage, rows=1000):
        return verdict({"rows": rows, "r2": r2, "level": 0.9, "coverage": coverage})

    assert "honest" in words(0.5, 0.9)[1]
    assert "too wide" in words(0.5, 0.95)[1]
    assert "too narrow" in words(0.5, 0.85)[1]
    assert "honest as far as 10 rows" in words(0.5, 0.8, rows=10)[1]
    levels = [words(r2, 0.9)[0].split(",")[0] for r2 in (0.95, 0.8, 0.5, 0.1, -1.0, np.nan)]
    assert levels == [
        f"Accuracy: {w}"
        for w in ("very good", "good", "moderate", "weak", "poor", "cannot be told")
    ]


def test_scores_with_weights_are_those_of_repeated_rows():
    rng = np.random.default_rng(0)
    y, mean, w = rng.standard_normal(20), rng.standard_normal(20), rng.integers(1, 4, 20)
    k = np.repeat(np.arange(20), w)
    a = score(y, tensorlace.Normal(mean, 0.5, 0.5), weight=w.astype(float))
    b = score(y[k], tensorlace.Normal(mean[k], 0.5, 0.5))
    for name in a.keys() - {"rows"}:
        assert a[name] == pytest.approx(b[name], rel=1e-12)


@pytest.mark.filterwarnings("ignore")
def test_rivals_see_plain_numbers():
    frame = make_table().assign(day=lambda f: pd.to_datetime(f["day"]), const=1.0)
    train, test = rivals.numbers(frame.iloc[:60].drop(columns="price"), frame.iloc[60:])
    assert train.shape == (60, 1 + 1 + 3 + 1 + 1 + 2 + 1)  # x, gap, shops, day, gap, codes, open
    assert test.shape == (N - 60, train.shape[1])
    assert np.all(np.isfinite(train))
    assert np.all(np.isfinite(test))
    assert np.allclose(train.std(axis=0), 1.0)
    y = np.random.default_rng(0).standard_normal(60)
    for rival in rivals.rivals(30).values():
        dist = rival(train, y, test, 0)
        assert dist.mean.shape == (N - 60,)
        assert np.all(dist.std > 0.0)


# ---- errors


@pytest.mark.parametrize(
    ("words", "code", "match"),
    [
        (["fit", "data.csv"], 2, r"Missing option '--target'.* \(see tensorlace fit --help\)"),
        (["fti", "data.csv"], 2, "No such command 'fti'"),
        (
            ["fit", "data.csv", "-t", "y", "--test-share", "2"],
            2,
            "Invalid value for '--test-share'",
        ),
        (
            ["fit", "data.csv", "-t", "price", "--rank", "many"],
            2,
            "neither a whole number nor auto",
        ),
        (["fit", "data.csv", "-t", "price", "--note", "x"], 2, "is not key=text"),
        (["fit", "data.csv", "-t", "prise"], 1, "no target column 'prise': did you mean 'price'"),
        (["fit", "data.csv", "-t", "zzz"], 1, "no target column 'zzz': there are x, shop, day"),
        (["fit", "data.csv", "-t", "shop"], 1, "'shop' is not numeric: row 1 has"),
        (["fit", "data.csv", "-t", "day"], 1, "'day' is not numeric: row 1 has"),
        (["fit", "data.csv", "-t", "price", "--drop", "shp"], 1, "did you mean 'shop'"),
        (["fit", "data.csv", "-t", "price", "--weight", "q"], 1, "no weight column 'q'"),
        (["fit", "data.csv", "-t", "price", "--columns", "x"], 1, "is not name=kind"),
        (["fit", "data.csv", "-t", "price", "--columns", "x=periodic:no"], 1, "is not name=kind"),
        (["fit", "data.csv", "-t", "price", "--columns", "y=numeric"], 1, "no --columns column"),
        (["fit", "data.csv", "-t", "price", "--rank", "-1"], 2, "neither a whole number nor auto"),
        (["fit", "data.csv", "-t", "price", "--rank", "1", "-o", "no/m"], 1, "cannot be written"),
        (["fit", "none.csv", "-t", "y"], 1, "none.csv cannot be read: No such file"),
        (["fit", ".", "-t", "y"], 1, "cannot be read: Is a directory"),
        (["predict", "data.csv", "data.csv"], 1, "data.csv is not a tensorlace model file"),
        (["predict", "none.tlace", "data.csv"], 1, "none.tlace cannot be read: No such file"),
        (["predict", "model.tlace", "data.csv", "-o", "no/a.csv"], 1, "no/a.csv cannot be written"),
        (
            ["predict", "model.tlace", "data.csv", "--coverage", "1"],
            2,
            "Invalid value for '--coverage'",
        ),
        (["evaluate", "model.tlace", "data.csv", "-t", "pric"], 1, "did you mean 'price'"),
        (["inspect", "data.parquet"], 1, "not a tensorlace model file"),
        (["schema", "fitt"], 1, "choose from compare, evaluate, fit, inspect, predict"),
        (
            ["compare", "data.csv", "-t", "price", "--splits", "0"],
            2,
            "Invalid value for '--splits'",
        ),
    ],
)
def test_errors(tl, model, words, code, match):
    result = tl(*words)
    assert re.search(match, result.error), result.error
    assert result.code == code
    assert result.out == ""


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"", "it is empty"),
        (b"\n\n", "it is empty|has no rows"),
        (b"a,b\n", "has no rows"),
        (b"a,b\n1,2\n3,4,5\n", "line 3 has 3 fields, the header has 2"),
        (b"a,b\n1,2\n3\n", "line 3 has 1 fields, the header has 2"),
        (b'a,b\n1,"2\n', "line 2"),
        (b"a,a\n1,2\n", "the header has 'a' twice"),
        (b"a,b\n1,\xff\n", "line 2 is not UTF-8"),
        ("a,b\n1,2\n".encode("utf-16"), "it is UTF-16 from line 1 on: save the file as UTF-8"),
        ("a,b\n1,2\n".encode("utf-16-le"), "line 1 has a null byte: it is not a CSV file"),
        (b"a,b\n1,2\n3,\0\n", "line 3 has a null byte: it is not a CSV file in UTF-8"),
        (b"a;b\n1,5;2\n2;3\n", "'a' has '1,5' in row 1, a decimal comma: write 1.5"),
        (b'a,b\n1,2\n1,\n3,"4,5"\n', "'b' has '4,5' in row 3, a decimal comma: write 4.5"),
        (b"a,b\n1,\n1,inf\n3,2\n", "'b' is infinite in row 2: drop the row"),
        (b"a,b\n1,\n1,2\n-inf,2\n", "'a' is infinite in row 3: drop the row"),
        (b"a,b\n1,\n2,\n", "'b' has no value in any row"),
        (b"b\n1\n2\n", "no column beside the target"),
        (b"a,b\n1,2\n", "1 sample"),
    ],
)
def test_csv_files_that_are_wrong(tl, folder, content, match):
    (folder / "wrong.csv").write_bytes(content)
    assert re.search(match, tl("fit", "wrong.csv", "-t", "b", "--rank", "1").error)


def test_a_csv_file_from_a_spreadsheet(tl, folder):
    """A byte order mark, CRLF, quotes, semicolons and an empty last line are no trouble."""
    lines = ["\ufeffa;b;y", '"x;1";"line\r\nfeed";1.5', ';"say ""hi""";2.5', "z;;3.5", ""]
    (folder / "sheet.csv").write_bytes("\r\n".join(lines).encode())
    words = ("fit", "sheet.csv", "-t", "y", "--rank", "1", "--test-share", "0", "--json")
    assert list(tl(*words).json["columns"]) == ["a", "b"]
    out = tl("predict", "sheet.tlace", "sheet.csv").out
    rows = list(csv.reader(io.StringIO(out, newline="")))
    assert [row[:3] for row in rows[:3]] == [
        ["a", "b", "y"],
        ["x;1", "line\r\nfeed", "1.5"],
        ["", 'say "hi"', "2.5"],
    ]


def test_files_that_are_no_parquet(tl, folder):
    (folder / "wrong.parquet").write_bytes(b"PAR1 nonsense")
    assert "wrong.parquet cannot be read" in tl("fit", "wrong.parquet", "-t", "b").error
    make_table()[:0].to_parquet(folder / "wrong.parquet")
    assert tl("fit", "wrong.parquet", "-t", "price").error == "error: wrong.parquet has no rows"


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="needs a device")
def test_devices_that_never_end(tl):
    assert tl("fit", "/dev/zero", "-t", "y").error == (
        "error: /dev/zero cannot be read: it is a device"
    )


def test_parquet_with_types_of_its_own(tl, folder):
    """Dates, categories, missing values, booleans and an index, as Parquet keeps them."""
    frame = make_table()
    frame["day"] = pd.to_datetime(frame["day"]).dt.tz_localize("Europe/Rome")
    frame["shop"] = frame["shop"].astype("category")
    frame["whole"] = pd.array([None, *range(1, N)], dtype="Int64")
    frame.index = [f"row {k}" for k in range(N)]
    frame.to_parquet(folder / "types.parquet")
    words = ("fit", "types.parquet", "-t", "price", "--rank", "1", "--columns", "code=categorical")
    kinds = valid("fit", tl(*words, "--json").json)["columns"]
    assert kinds["day"] == "Datetime()"
    assert kinds["shop"] == "Categorical()"
    assert kinds["whole"] == "Numeric()"
    plain, _ = rivals.numbers(frame, frame)
    assert np.all(np.isfinite(plain))
    assert tl("predict", "types.tlace", "types.parquet", "-o", "out.pq").code == 0
    out = pd.read_parquet(folder / "out.pq")
    pd.testing.assert_frame_equal(out[frame.columns], frame.reset_index(drop=True))
    frame.loc["row 7", "whole"] = None
    frame["whole"] = frame["whole"].astype("float64")
    frame.loc["row 8", "whole"] = np.inf
    frame.to_parquet(folder / "types.parquet")
    text = tl("predict", "types.tlace", "types.parquet").error
    assert text.startswith("error: column 'whole' is infinite in row 9")


def test_rows_in_errors_are_those_of_the_file(tl, folder, model):
    """Whatever was left out or kept for a test before, and however the library counts."""
    frame = make_table().astype({"x": object})
    frame.loc[0, "price"] = None
    frame.loc[40, "x"] = "much"
    frame.to_csv(folder / "odd.csv", index=False)
    words = ("fit", "odd.csv", "-t", "price", "--rank", "1", "--test-share", "0")
    text = tl(*words, "--columns", "x=numeric").error
    assert "column 'x' is not numeric: row 41 has 'much'" in text
    assert (
        "column 'x' is not numeric: row 41 has 'much'" in tl("predict", model[0], "odd.csv").error
    )
    assert "row 41 has 'much'" in tl("evaluate", model[0], "odd.csv").error
    frame.loc[frame.index != 40, "x"] = np.arange(N - 1) % 5
    frame.loc[[2, 3], "price"] = None
    frame.to_csv(folder / "odd.csv", index=False)
    result = tl(*words)
    assert result.code == 0
    assert "column 'x' is categories, since row 41 has 'much'" in result.err


def test_columns_that_no_model_needs_may_be_odd(tl, folder, model):
    frame = make_table().assign(size="1,5", distance=np.inf)
    frame.to_csv(folder / "wide.csv", index=False)
    assert tl("predict", model[0], "wide.csv").code == 0
    words = ("fit", "wide.csv", "-t", "price", "--rank", "1", "--drop", "distance")
    assert "'size' has '1,5' in row 1, a decimal comma" in tl(*words).error
    assert tl(*words, "--columns", "size=categorical").code == 0


def test_a_column_that_is_missing(tl, model, folder):
    make_table().rename(columns={"shop": "shops"}).to_csv(folder / "other.csv", index=False)
    text = tl("predict", model[0], "other.csv").error
    assert "lacks 1 of the 5 columns of the model: shop; did you rename it to 'shops'?" in text


def test_an_error_that_nobody_thought_of(tl, model, monkeypatch):
    def broken(path):
        raise RuntimeError("two\nlines")

    monkeypatch.setattr("tensorlace.cli.commands.inspect.load", broken)
    assert tl("inspect", model[0]).error.startswith("error: RuntimeError: two lines (TENSORLACE_TR")
    monkeypatch.setenv("TENSORLACE_TRACEBACK", "1")
    monkeypatch.setattr(sys, "argv", ["tensorlace", "inspect", str(model[0])])
    with pytest.raises(RuntimeError):
        run()


def test_types_of_columns(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(
        "\ufeffdate,instant,zone,almost,never,number,text\r\n"
        "2026-01-01,2026-01-01T10:00:00,2026-01-01 10:00:00+02:00,2026-01-01,2026-02-30,1,x\r\n"
        ",2026-01-01 11:30,2026-01-01 10:00:00Z,soon,2026-02-28,NA,\r\n"
    )
    frame = read_frame(path)
    kinds = [frame[name].dtype.kind for name in frame.columns]
    assert kinds == ["M", "M", "M", "O", "O", "f", "O"]
    assert frame["zone"].tolist() == [
        pd.Timestamp("2026-01-01 08:00"),
        pd.Timestamp("2026-01-01 10"),
    ]
    assert pd.isna(frame["date"][1])
    written = read_frame(path, as_written=True)
    assert written["number"].tolist() == ["1", "NA"]
    assert written["zone"][0] == "2026-01-01 10:00:00+02:00"


# ---- the process


def test_help_names_all_commands_and_has_examples(tl):
    result = tl("--help")
    assert result.code == 0
    for name in (
        *("fit", "predict", "evaluate", "compare", "inspect", "export", "serve", "schema"),
        "demo",
    ):
        assert re.search(rf"\b{name}\b", result.out)
        text = tl(name, "--help").out
        assert f"tensorlace {name}" in text.split("Example")[1]
    assert max(map(len, result.out.splitlines())) <= 80


def test_export(tl, model, folder, monkeypatch):
    import onnx

    path, _ = model
    result = tl("export", path)
    assert result.code == 0, result.err
    assert "5 inputs (rows, 1)" in " ".join(result.out.split())
    proto = onnx.load(folder / "model.onnx")
    about = {entry.key: entry.value for entry in proto.metadata_props}
    assert about["tensorlace.target"] == "price"
    tl("export", path, "-o", "other.onnx")
    assert (folder / "other.onnx").read_bytes() == (folder / "model.onnx").read_bytes()
    assert "is the model itself" in tl("export", path, "-o", path).error
    assert "cannot be written" in tl("export", path, "-o", folder / "none" / "a.onnx").error
    monkeypatch.setitem(sys.modules, "onnx", None)
    assert "pip install 'tensorlace[onnx]'" in tl("export", path).error


def test_serve_refuses_in_one_line(tl, model, monkeypatch):
    path, _ = model
    before = signal.getsignal(signal.SIGTERM)
    try:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            assert (
                f"127.0.0.1:{port} cannot be listened on" in tl("serve", path, "--port", port).error
            )
    finally:
        signal.signal(signal.SIGTERM, before)
    assert "cannot be read" in tl("serve", "nothing.tlace").error
    for name in [n for n in sys.modules if n.startswith("tensorlace.serve")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert "pip install 'tensorlace[serve]'" in tl("serve", path).error


def test_schemas_are_schemas(tl):
    for path in (Path(files.__file__).parent / "schemas").glob("*.json"):
        schema = json.loads(tl("schema", path.stem).out)
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema["additionalProperties"] is False


def test_demo(tl, folder, monkeypatch):
    monkeypatch.setattr(demo, "cubic_splits", lambda: iter([demo.cubic(0)]))
    monkeypatch.setattr(demo, "diabetes_splits", lambda: iter([demo.cubic(1)]))
    monkeypatch.setattr(demo, "diabetes_models", demo.cubic_models)
    shown = tl("demo").out
    assert [line.split()[0] for line in shown.splitlines() if "  " in line].count("exact") == 2
    assert shown.endswith("figure with predictive bands: out/demo.png\n")
    assert (folder / "out" / "demo.png").read_bytes()[:4] == b"\x89PNG"
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "pip install 'tensorlace[plots]'" in tl("demo").error


def test_without_the_laboratory(tl, monkeypatch):
    for name in [n for n in sys.modules if n.partition(".")[0] == "tensorlace_lab"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "tensorlace_lab", None)
    for words in (["reproduce", "cubic"], ["demo"], ["compare", "data.csv", "-t", "price"]):
        result = tl(*words)
        assert result.code == 1
        assert "pip install 'tensorlace[lab]'" in result.error
        assert "\n" not in result.error.strip()
    with pytest.raises(ModuleNotFoundError, match="pip install"):
        from tensorlace.baselines import ExactGP  # noqa: F401


def test_reproduce_is_the_command_of_the_laboratory(tl, monkeypatch):
    seen = []
    monkeypatch.setattr("tensorlace_lab.__main__.main", lambda words: seen.append(words) or 1)
    assert tl("reproduce", "uci", "--quick").code == 1
    assert seen == [["uci", "--quick"]]


def test_without_the_extra():
    code = "import sys; sys.modules['typer'] = None; from tensorlace.cli import main; main()"
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=environment())
    assert done.returncode == 1
    assert done.stderr == "error: the command line needs typer: pip install 'tensorlace[cli]'\n"


def test_nobody_reads_on_and_standard_input(model, folder):
    path, _ = model
    frame = pd.concat([make_table()] * 60)
    words = [sys.executable, "-m", "tensorlace.cli", "predict", str(path), "-"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(words, env=environment(), text=True, **pipes) as process:
        process.stdin.write(frame.to_csv(index=False))
        process.stdin.close()
        assert process.stdout.readline().startswith("x,shop,day,code,open,price,mean,std")
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait() == 141


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_nobody_reads_tables(model, more):
    nowhere, end = os.pipe()
    os.close(nowhere)
    done = command("inspect", model[0], *more, capture_output=False, stdout=end, stderr=-1)
    os.close(end)
    assert (done.returncode, done.stderr) == (141, b"")


def on_terminal(*args, folder):
    """Exit code and text of a command on a terminal of 24 lines and 80 columns."""
    terminal, end = pty.openpty()
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    env = environment(TERM="xterm")
    del env["COLUMNS"]
    words = [sys.executable, "-m", "tensorlace.cli", *args]
    how = {"stdin": end, "stdout": end, "stderr": end, "cwd": folder, "env": env}
    seen = b""
    with subprocess.Popen(words, **how) as process:
        os.close(end)
        while True:
            try:
                seen += os.read(terminal, 4096)
            except OSError:  # the other end is closed
                break
        os.close(terminal)
    return process.returncode, seen.decode()


def test_a_newcomer_at_a_terminal(folder):
    """From a table with quotes, gaps, dates and categories to answers, in 80 columns."""
    words = ("fit", "data.csv", "--target", "price", "-o", "new.tlace", "--time-budget", "0.2")
    code, fitted = on_terminal(*words, folder=folder)
    assert code == 0, fitted
    assert "trying models" in fitted
    assert "fitting the best" in fitted
    code, evaluated = on_terminal("evaluate", "new.tlace", "data.csv", folder=folder)
    assert code == 0
    assert re.search(r"^Accuracy: (very )?good", evaluated, re.M)
    for text in (fitted, evaluated):
        plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
        assert max(len(line.rstrip()) for line in re.split(r"[\r\n]+", plain)) <= 80


def test_a_bar_and_an_interrupt(folder):
    """The bar is on the terminal, nothing on standard output; two interrupts leave no file."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((3000, 8))).rename(columns=str)
    frame.to_csv(folder / "large.csv", index=False)
    words = [sys.executable, "-m", "tensorlace.cli", "fit", "large.csv", "-t", "0"]
    terminal, end = pty.openpty()
    how = {"stdout": subprocess.PIPE, "stderr": end, "stdin": end, "cwd": folder}
    env = environment(TERM="xterm")
    with subprocess.Popen([*words, "--time-budget", "300"], env=env, **how) as process:
        os.close(end)
        seen = b""
        while "━".encode() not in seen:
            seen += os.read(terminal, 4096)
        process.send_signal(signal.SIGINT)
        time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130
        assert process.stdout.read() == b""
    assert b"fitting" in seen
    while True:
        try:
            seen += os.read(terminal, 4096)
        except OSError:  # the other end is closed
            break
    os.close(terminal)
    assert b"interrupted" in seen
    assert not (folder / "large.tlace").exists()


def test_an_interrupt_writes_the_best_so_far(folder):
    """After some trials: the model is tested and written, and the exit code tells."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((3000, 4))).rename(columns=str)
    frame["0"] += 2.0 * frame["1"]
    frame.to_csv(folder / "line.csv", index=False)
    code = (
        "import os, signal, sys; from tensorlace.search.task import Progress\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "fitted = Progress.fitted\n"
        "def told(self, *what):\n"
        "    fitted(self, *what); told.times += 1\n"
        "    if told.times == 6: os.kill(os.getpid(), signal.SIGINT)\n"
        "told.times = 0; Progress.fitted = told\n"
        "sys.argv = ['tensorlace', 'fit', 'line.csv', '-t', '0', '--time-budget', '300']\n"
        "from tensorlace.cli.app import run; run()"
    )
    how = {"capture_output": True, "text": True, "cwd": folder, "timeout": 120}
    done = subprocess.run([sys.executable, "-c", code], check=False, env=environment(), **how)
    assert done.returncode == 130
    assert "ending with the best so far" in done.stderr
    assert "warning: an interrupt ended the search" in done.stderr
    assert "Model: line.tlace" in done.stdout
    model = tensorlace.load(folder / "line.tlace")
    assert np.corrcoef(model.predict(frame.drop(columns="0")), frame["0"])[0, 1] > 0.85


def test_a_limit_by_the_clock(tl):
    shown = tl("fit", "data.csv", "-t", "price", "--time-limit", "0.01", "--json")
    assert shown.code == 0
    assert "warning: time_limit ended the search" in shown.err
    assert tl("fit", "data.csv", "-t", "price", "--time-limit", "0").code == 2


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_can_be_shown_and_installed(tl, shell, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("shellingham.detect_shell", lambda: (shell, f"/bin/{shell}"))
    shown = tl("--show-completion")
    assert shown.code == 0
    assert f"_TENSORLACE_COMPLETE=complete_{shell}" in shown.out
    done = tl("--install-completion")
    assert (done.code, done.err) == (0, "")
    texts = [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    assert any(f"_TENSORLACE_COMPLETE=complete_{shell}" in text for text in texts)


def test_completion():
    env = environment(
        _TENSORLACE_COMPLETE="complete_bash", COMP_WORDS="tensorlace ins", COMP_CWORD="1"
    )
    done = command(env=env, text=True)
    assert done.stdout.split() == ["inspect"]
