"""The report page: what it says, that it stands alone, and the command that writes it."""

import json
import re
import sys
import warnings
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LinearRegression

from tensorlace import TNKMRegressor, load, metrics, save
from tensorlace.cli.app import run
from tensorlace.compact.compaction import compact, n_bytes
from tensorlace.errors import InputError
from tensorlace.predictive.checks import check
from tensorlace.predictive.held_back import HeldBackTest
from tensorlace.report import write_report
from tensorlace.report.regions import regions
from tensorlace.report.reported_rows import ReportedRows
from tests.helpers.javascript import start_javascript  # noqa: F401
from tests.helpers.models import with_record
from tests.helpers.reported import FRAME, KINDS, NEW, ROWS, N, X, Y, agree, fit


class Page(HTMLParser):
    """Elements of a page, in order, and whether they are properly nested."""

    VOID = frozenset({"meta", "link", "input", "br", "path", "rect"})

    def __init__(self, text):
        super().__init__()
        self.text, self.elements, self.open, self.words = text, [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not self.open or self.open[-1] not in ("script", "style"):
            self.words.append(data)

    @property
    def plain(self):
        return " ".join(" ".join(self.words).split())

    @property
    def content(self):
        found = re.search(r'<script type="application/json" id="content">(.*?)</script>', self.text)
        return json.loads(found[1])


def write(tmp_path, model, rows, y=None, **options):
    path = write_report(model, rows, y, tmp_path / "report.html", **options)
    return Page(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def mixed():
    return fit(FRAME, Y, columns=KINDS, n_members=2, threshold=1e-3)


SECTIONS = ("glance", "whatif", "data", "choice", "fit", "accuracy", "calibration", "effects")
SECTIONS += ("rows", "spectrum", "cost", "reproduce")


def test_all_sections_and_nothing_from_elsewhere(mixed, tmp_path):
    page = write(tmp_path, mixed, FRAME, Y, target="sales", title="Shops")
    ids = [attrs.get("id") for tag, attrs in page.elements if tag == "section"]
    assert ids == list(SECTIONS)
    for _, attrs in page.elements:
        for key in ("src", "href", "action", "srcset", "data"):
            assert attrs.get(key, "#").startswith(("#", "data:,")), attrs
    policy = next(a["content"] for _, a in page.elements if a.get("http-equiv"))
    assert policy.startswith("default-src 'none'")
    assert set(re.findall(r"https?://[^\s\"'<>]+", page.text)) == {"http://www.w3.org/2000/svg"}
    assert "url(" not in page.text
    assert "@import" not in page.text
    for link in (a["href"] for tag, a in page.elements if tag == "a"):
        assert link[1:] in SECTIONS
    assert page.plain.count("90 rows") >= 2
    assert "threshold t̂ = 0.001" in page.plain
    for name in FRAME.columns:
        assert name in page.plain
    svgs = [a for tag, a in page.elements if tag == "svg" and a.get("class") == "plot"]
    assert len(svgs) >= 15
    assert all(a["role"] == "img" and a["aria-label"] for a in svgs)
    assert all("nan" not in (a.get("d") or "") for _, a in page.elements)


def test_new_rows_and_training_rows_are_told_apart(tmp_path):
    model = fit(X[:60], Y[:60])
    assert (
        "60 of 60 rows are like one of the training rows"
        in write(tmp_path, model, X[:60], Y[:60]).plain
    )
    page = write(tmp_path, model, X[60:], Y[60:])
    assert "None of these rows is among the training rows" in page.plain
    assert ("span", {"class": "good"}) in page.elements
    page = write(tmp_path, model, X[40:], Y[40:])
    assert "20 of 50 rows are like one of the training rows" in page.plain
    assert "some training rows" in page.plain


def test_models_saved_without_training_rows(tmp_path):
    save(fit(), tmp_path / "model.tlace", background=False)
    model = load(tmp_path / "model.tlace")
    page = Page(write_report(model, X, Y, tmp_path / "report.html").read_text(encoding="utf-8"))
    assert "saved without its training rows: averages are over these rows" in page.plain
    assert model.model_.rows is None
    with pytest.raises(InputError, match="background=False"):
        compact(model, 1000)


def test_scores_are_those_of_metrics(tmp_path):
    model = fit(X[:60], Y[:60])
    dist = model.predict_dist(X[60:])
    page = write(tmp_path, model, X[60:], Y[60:])
    scores = metrics.summary(Y[60:], dist)
    for key in ("rmse", "nll", "crps"):
        assert f" {scores[key]:.4g} " in page.plain
    assert f"{scores['ecp95']:.1%}" in page.plain
    worst = np.argmax(np.abs((Y[60:] - dist.mean) / dist.std))
    table = page.plain.split("Farthest from their prediction")[1].split("Beyond")[0]
    assert f"{worst + 1} {Y[60:][worst]:.4g} {dist.mean[worst]:.4g}" in table


def test_without_targets(tmp_path):
    page = write(tmp_path, fit(), X[:5])
    assert "The rows have no target: there is nothing to score." in page.plain
    ids = [attrs.get("id") for tag, attrs in page.elements if tag == "section"]
    assert "accuracy" not in ids
    assert "calibration" not in ids


@pytest.mark.parametrize("n", [1, 2])
def test_few_rows(tmp_path, n):
    page = write(tmp_path, fit(), X[:n], Y[:n])
    assert ("One row says nothing about calibration" in page.plain) == (n == 1)


def test_values_that_training_did_not_have(mixed, tmp_path):
    y = np.concatenate([Y[:12], Y[-3:]])
    page = write(tmp_path, mixed, NEW, y)
    found = mixed.novelty(NEW)
    assert f"{int(found.unlike.sum())} of 15 rows are unlike those of training" in page.plain
    assert f"most often by {found.most_common}: see" in page.plain
    assert "never seen" in page.plain
    table = page.plain.split("Unlike the training rows")[1].split("Hessian")[0]
    places = [table.index(found.reasons[k]) for k in np.argsort(-found.measure) if found.unlike[k]]
    assert min(places) > 0


TEST = HeldBackTest(
    *(1234, 3, 0.25, 0.9, -0.5, 0.125, 0.95, 0.96, 1.5),
    contradicted=False,
    message="no contradiction: 95 % intervals hold 96 % of 1234 rows",
)


def test_rows_held_back_lead_the_banner(tmp_path):
    """Before the check of the fit itself, which is told in small letters."""
    bare = fit(X[:60], Y[:60])
    inner = check(Y[60:], bare.predict_dist(X[60:]))
    own = with_record(bare, check=inner)
    banner = f"On rows held out or left out: {inner.message}."
    assert banner in write(tmp_path, own, X[:60], Y[:60]).plain
    tested = with_record(bare, check=inner, held_back=TEST)
    page = write(tmp_path, tested, X[:60], Y[:60])
    lead = "On 1,234 rows held back for a test, which nothing was fitted to or chosen on: "
    assert f"{lead}{TEST.message}; {TEST.scores}; 3 of them are unlike" in page.plain
    assert banner not in page.plain
    small = "The fit’s own check, on rows held out or left out:"
    assert page.plain.index(lead) < page.plain.index(small)
    bad = replace(TEST, contradicted=True)
    page = write(tmp_path, with_record(bare, held_back=bad), X[:60], Y[:60])
    assert ("p", {"class": "verdict bad"}) in page.elements


def test_given_rows_that_are_new_lead_the_banner(tmp_path):
    model = with_record(fit(X[:60], Y[:60]), held_back=TEST)
    page = write(tmp_path, model, X[60:], Y[60:])
    message = model.check_calibration(X[60:], Y[60:]).message
    lead = f"On these rows, which the model was not fitted to: {message}."
    assert page.plain.index(lead) < page.plain.index("held back for a test")
    again = write(tmp_path, model, X[:60], Y[:60])
    assert "which the model was not fitted to" not in again.plain


def test_names_are_text_and_not_markup(tmp_path):
    evil = "</script><b onclick=x>&amp;"
    frame = pd.DataFrame({evil: X[:, 0], "shop": np.where(X[:, 1] > 0, evil, "fine")})
    page = write(tmp_path, fit(frame, Y), frame, Y, target=evil, title=evil, notes={evil: evil})
    assert not any(tag == "b" for tag, _ in page.elements)
    assert page.content["columns"][0]["name"] == evil
    assert page.content["columns"][1]["options"][0][0] == evil
    assert evil in page.plain


def test_small_models_are_embedded_to_the_bit(javascript, mixed, tmp_path):
    page = write(tmp_path, mixed, FRAME, Y)
    assert "The panel uses the full model" in page.plain
    table = mixed.fitted_model().encode(NEW)
    found = javascript.predict(page.content["model"], table)
    dist = mixed.predict_dist(NEW)
    np.testing.assert_allclose([p["mean"] for p in found], dist.mean, rtol=1e-9)
    np.testing.assert_allclose([p["std"] for p in found], dist.std, rtol=1e-9)


def test_large_models_are_made_smaller_and_the_page_says_how_far_off(
    javascript, tmp_path, monkeypatch
):
    monkeypatch.setattr("tensorlace.report.page.MOST_BYTES", 400_000)
    model = fit(rank=6, n_basis=12, n_members=3, max_sweeps=3)
    assert n_bytes(model) > 400_000
    page = write(tmp_path, model, X[:50], Y[:50])
    assert len(page.text.encode()) < 400_000
    assert re.search(r"at most [\d.e-]+ standard deviations from the full model’s", page.plain)
    agree(javascript, compact(model, n_bytes(model) // 20), ROWS)
    found = javascript.predict(page.content["model"], X[:50])
    off = np.abs(np.array([p["std"] for p in found]) / model.predict_dist(X[:50]).std - 1).max()
    stated = float(re.search(r"and at most ([\d.]+)%\.", page.plain)[1]) / 100
    assert 0 < off == pytest.approx(stated, abs=6e-5)
    measure = np.array([p["novelty"]["measure"] for p in found])
    apart = np.abs(measure / model.novelty(X[:50]).measure - 1)
    words = r"Its novelty is typically ([\d.]+)% and at most ([\d.]+)% from"
    typical, most = (float(v) / 100 for v in re.search(words, page.plain).groups())
    assert typical == pytest.approx(np.median(apart), abs=6e-5)
    assert 0 < most == pytest.approx(apart.max(), abs=6e-5)


def test_ten_thousand_rows(tmp_path):
    rng = np.random.default_rng(0)
    table = rng.uniform(-1, 1, (10_000, 4))
    y = table[:, 0] * table[:, 1] + 0.1 * rng.standard_normal(10_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = TNKMRegressor(rank=2, n_basis=4, max_sweeps=5, random_state=0).fit(table, y)
    page = write(tmp_path, model, table, y)
    assert len(page.text.encode()) < 3_000_000
    assert "10,000 rows" in page.plain
    part = write(tmp_path, model, table, y, max_rows=300)
    assert "300 rows of 10,000" in part.plain


@pytest.mark.parametrize(
    "params",
    [{"predictive": "sampled", "n_draws": 5}, {"curvature": "diag"}, {"rotate": True}],
    ids=str,
)
def test_other_models(tmp_path, params):
    page = write(tmp_path, fit(**params), X, Y)
    assert ("predicts by sampling" in page.plain) == ("predictive" in params)


def test_calibrated_model(javascript, tmp_path):
    model = fit(X[:40], Y[:40]).calibrate(X[40:85], Y[40:85])
    page = write(tmp_path, model, X[85:], Y[85:])
    assert "calibrated with 45 held-out rows" in page.plain
    found = javascript.predict(page.content["model"], X[85:])
    lower, upper = model.predict_interval(X[85:], 0.95)
    np.testing.assert_allclose([p["quantiles"][0] for p in found], lower, rtol=1e-9)
    np.testing.assert_allclose([p["quantiles"][4] for p in found], upper, rtol=1e-9)
    few = fit(X[:40], Y[:40]).calibrate(X[40:50], Y[40:50])
    write(tmp_path, few, X[50:], Y[50:])


def test_search_is_told(tmp_path):
    model = TNKMRegressor(time_budget=0.3, random_state=0, n_jobs=1).fit(X, Y)
    page = write(tmp_path, model, X, Y)
    n = len(model.search_results_)
    assert f"{n} candidates were fitted and judged" in page.plain
    best = model.search_results_["held_out_log_score"].max()
    assert f"{best:.3f}" in page.plain
    assert "chosen" in page.plain
    assert "time_budget=0.3" in page.plain


def test_wrong_input(tmp_path):
    model = fit()
    with pytest.raises(InputError, match=r"y has shape \(3,\), but X has 5 rows"):
        write_report(model, X[:5], Y[:3], tmp_path / "a.html")
    with pytest.raises(InputError, match="max_rows=0"):
        write_report(model, X[:5], Y[:5], tmp_path / "a.html", max_rows=0)
    with pytest.raises(InputError, match="a LinearRegression is no fitted model"):
        write_report(LinearRegression().fit(X, Y), X, Y, tmp_path / "a.html")
    with pytest.raises(NotFittedError):
        write_report(TNKMRegressor(), X, Y, tmp_path / "a.html")
    assert list(tmp_path.iterdir()) == []


def test_without_jinja2(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=r"pip install 'tensorlace\[report\]'"):
        write_report(fit(), X, Y, tmp_path / "a.html")


def test_coverage_by_region_is_counted_right():
    """A category whose intervals all miss has a dot at 0, the other at its share."""
    frame = pd.DataFrame({"x": X[:, 0], "shop": np.where(X[:, 1] > 0, "up", "down")})
    model = fit(frame, Y)
    y = model.predict(frame) + np.where(X[:, 1] > 0, 1e6, 0.0)
    rows = ReportedRows.of(model.fitted_model(), frame, y, 10_000)
    picture = regions(rows, 1)
    assert re.findall(r'y="203">(up|down)<', picture) == ["up", "down"]
    dots = re.findall(r'class="dots s\d"[^>]*d="([^"]*)"', picture)
    heights = [[float(v) for v in re.findall(r"M[\d.]+ ([\d.]+)h0", d)] for d in dots]
    bottom, top = 230 - 44, 12 + (230 - 44 - 12) * 0.06 / 1.06
    for level in heights:
        np.testing.assert_allclose(level, [bottom, top], atol=0.06)
    assert regions(rows).count('class="dots') == 2
    constant = pd.DataFrame({"x": np.zeros(N), "z": X[:, 0]})
    assert regions(ReportedRows.of(fit(constant, Y).fitted_model(), constant, Y, N), 0) is None


# ---- the command ----


@pytest.fixture
def folder(tmp_path, monkeypatch, mixed):
    monkeypatch.chdir(tmp_path)
    save(mixed, "shops.tlace", notes={"target": "sales", "seconds": 1.5})
    FRAME.assign(sales=Y).to_csv("shops.csv", index=False)
    FRAME.to_csv("new.csv", index=False)
    return tmp_path


def command(capfd, monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["tensorlace", *arguments])
    with pytest.raises(SystemExit) as end:
        run()
    out, err = capfd.readouterr()
    return end.value.code, out, err


def test_command(folder, capfd, monkeypatch):
    code, out, err = command(
        capfd, monkeypatch, "report", "shops.tlace", "shops.csv", "-o", "page.html"
    )
    assert (code, err) == (0, "")
    assert re.fullmatch(r"Report: page\.html \([\d.]+ KiB\)\n", out)
    page = Page((folder / "page.html").read_text(encoding="utf-8"))
    assert "tensorlace report shops.tlace shops.csv -o page.html" in page.plain
    assert "target: sales" in page.plain
    assert "fit 1.5 s" in page.plain
    assert "90 of 90 rows are like one of the training rows" in page.plain


def test_command_without_target(folder, capfd, monkeypatch):
    code, out, err = command(capfd, monkeypatch, "report", "shops.tlace", "new.csv")
    assert (code, out.split(" (")[0]) == (0, "Report: shops.html")
    assert err == "the table has no target column: the page has no scores\n"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["new.csv", "-t", "sale"], "no target column 'sale'"),
        (["shops.csv", "-o", "no/such/page.html"], "no/such/page.html cannot be written"),
        (["none.csv"], "none.csv cannot be read"),
        (["shops.csv", "--max-rows", "0"], "max-rows"),
    ],
    ids=str,
)
def test_command_errors_are_one_line(folder, capfd, monkeypatch, arguments, text):
    code, out, err = command(capfd, monkeypatch, "report", "shops.tlace", *arguments)
    assert code in (1, 2)
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert text in err


def test_command_help(capfd, monkeypatch):
    code, out, _ = command(capfd, monkeypatch, "report", "--help")
    assert code == 0
    assert "tensorlace report houses.tlace test.csv -o report.html" in " ".join(out.split())
