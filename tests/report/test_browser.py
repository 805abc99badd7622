"""The report in Chromium: what people see, touch and hear of it."""

import json
import time

import numpy as np
import pandas as pd
import pytest

from tensorlace.report import write_report
from tensorlace.report.embed import LEVELS
from tests.helpers.javascript import find_chromium, open_browser
from tests.helpers.reported import FRAME, KINDS, X, Y, fit

pytestmark = pytest.mark.skipif(
    find_chromium() is None, reason="chromium or chromedriver is not installed"
)

MODEL = fit(FRAME, Y, columns=KINDS, additive=True, n_members=2)
WORDS = ("size", "shop", "hour", "day", "open", "grade", "full")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    return write_report(MODEL, FRAME, Y, folder / "report.html", target="sales").as_uri()


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    driver = open_browser(tmp_path_factory.mktemp("chromium"))
    yield driver
    driver.quit()


@pytest.fixture
def browser(driver, page):
    look(driver)
    driver.get(page)
    settled(driver)
    return driver


def look(driver, *, width=1280, scheme="light"):
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)


def settled(driver):
    """Wait until the curve is that of the values."""
    script = """
        const seen = document.getElementById("curve").dataset;
        return seen.points !== undefined && seen.row === JSON.stringify(whatIf.x)
    """
    for _ in range(400):
        if driver.execute_script(script):
            return
        time.sleep(0.025)
    raise AssertionError("the curve is not there")


def said(driver):
    settled(driver)
    return driver.execute_script("return whatIf")


def raw_row(values):
    """A row of numbers as the table has it."""
    row = {}
    for d, name in enumerate(WORDS):
        value = np.nan if values[d] is None else values[d]
        if name in ("shop", "grade"):
            labels = MODEL.model_.encoding.labels(d)
            row[name] = None if np.isnan(value) else labels[int(value)] if value >= 0 else "new"
        elif name == "day":
            origin = MODEL.model_.encoding.codes[d].origin
            row[name] = (
                pd.NaT if np.isnan(value) else pd.Timestamp(origin) + pd.Timedelta(value, "D")
            )
        else:
            row[name] = value
    return pd.DataFrame([row])


def equal_to_python(found):
    row = raw_row(found["x"])
    dist = MODEL.predict_dist(row)
    want = [dist.mean[0], dist.std[0], dist.epistemic_std[0], dist.aleatoric_std[0]]
    got = [found[key] for key in ("mean", "std", "epistemic", "aleatoric")]
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-9 * dist.std[0])
    quantiles = MODEL.predict_quantiles(row, LEVELS)[0]
    np.testing.assert_allclose(found["quantiles"], quantiles, rtol=0, atol=1e-9 * dist.std[0])
    novelty = MODEL.novelty(row)
    assert found["novelty"]["measure"] == pytest.approx(novelty.measure[0], rel=1e-9)
    assert found["novelty"]["reason"] == novelty.reasons[0]


def press(driver, node, *keys):
    from selenium.webdriver.common.action_chains import ActionChains

    driver.execute_script("arguments[0].focus()", node)
    ActionChains(driver).send_keys(*keys).perform()


def test_no_error_and_no_request(driver, page):
    driver.get_log("browser")
    driver.get_log("performance")
    driver.get(page)
    settled(driver)
    assert driver.get_log("browser") == []
    events = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    urls = [
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
        and not event["params"]["documentURL"].startswith("chrome://")  # its first, empty tab
    ]
    assert page in urls
    assert [url for url in urls if url != page and not url.startswith("data:")] == []


def test_controls_of_every_kind_change_the_answer(browser):
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import Select

    equal_to_python(before := said(browser))
    shown = browser.find_element("id", "answer").text

    def changed():
        nonlocal before
        found = said(browser)
        assert found["x"] != before["x"]
        assert found["mean"] != before["mean"]
        equal_to_python(found)
        before = found

    press(browser, browser.find_element("id", "column-0"), Keys.ARROW_RIGHT)  # a slider
    changed()
    assert browser.find_element("id", "answer").text != shown
    box = browser.find_element("css selector", "#column-0 ~ input[type=number]")
    box.clear()
    box.send_keys("1.25")
    changed()
    assert before["x"][0] == 1.25
    Select(browser.find_element("id", "column-1")).select_by_visible_text("c")
    changed()
    Select(browser.find_element("id", "column-1")).select_by_value("other")
    changed()
    unlike = "Unlike the training rows: shop has a value that no training row had."
    assert unlike in browser.find_element("id", "answer").text
    browser.find_element("id", "column-1-missing").click()
    changed()
    assert not browser.find_element("id", "column-1").is_enabled()
    browser.find_element("id", "column-2-missing").send_keys(Keys.SPACE)
    changed()
    day = browser.find_element("css selector", "input[type=datetime-local]")
    browser.execute_script(
        "arguments[0].value = '2026-03-04T05:06'; arguments[0].dispatchEvent(new Event('input'))",
        day,
    )
    changed()
    Select(browser.find_element("id", "column-4")).select_by_index(1 - int(before["x"][4]))
    changed()
    start = Select(browser.find_element("id", "start"))
    start.select_by_index(2)
    changed()
    assert "observed" in browser.find_element("id", "answer").text


def test_a_combination_off_the_data_is_named_as_by_python(driver, tmp_path):
    """Two columns that rise together, set against each other within their ranges."""
    rng = np.random.default_rng(2)
    a = rng.uniform(-1, 1, 200)
    table = pd.DataFrame({"a": a, "b": a + 0.05 * rng.standard_normal(200)})
    model = fit(table, np.sin(2 * a) + 0.1 * rng.standard_normal(200))
    path = write_report(model, table, None, tmp_path / "pair.html")
    look(driver)
    driver.get(path.as_uri())

    def words():
        return driver.find_element("css selector", "#answer .support").text

    found = said(driver)
    assert found["novelty"]["measure"] == pytest.approx(
        model.novelty(pd.DataFrame([found["x"]], columns=["a", "b"])).measure[0], rel=1e-9
    )
    assert found["novelty"]["measure"] <= 1.0
    assert words().startswith("Like the training rows.")
    for column, value in enumerate(("0.9", "-0.9")):
        box = driver.find_element("css selector", f"#column-{column} ~ input[type=number]")
        box.clear()
        box.send_keys(value)
    found, wanted = said(driver), model.novelty(pd.DataFrame({"a": [0.9], "b": [-0.9]}))
    assert found["x"] == [0.9, -0.9]
    assert wanted.causes == ("the combination of values",)
    assert found["novelty"]["measure"] == pytest.approx(wanted.measure[0], rel=1e-9)
    assert words().startswith(f"Unlike the training rows: {wanted.reasons[0]}.")
    assert f"novelty {wanted.measure[0]:.4g}; unlike above 1" in words()


@pytest.mark.parametrize("d", range(len(WORDS)))
def test_curve_along_each_column(browser, d):
    browser.execute_script(
        """
        delete document.getElementById("curve").dataset.points;
        const along = document.getElementById("along");
        along.value = String(arguments[0]);
        along.dispatchEvent(new Event("change"));
        """,
        d,
    )
    found = said(browser)
    curve = browser.execute_script("return document.getElementById('curve').dataset")
    grid, means = json.loads(curve["grid"]), json.loads(curve["points"])
    rows = pd.concat([raw_row([*found["x"][:d], v, *found["x"][d + 1 :]]) for v in grid])
    want = MODEL.predict(rows)
    np.testing.assert_allclose(means, want, rtol=0, atol=1e-9 * found["std"])
    assert len(grid) == (61 if WORDS[d] not in ("shop", "open", "grade") else len(grid))
    assert browser.find_elements("css selector", "#curve svg path.area")


def test_keyboard_reaches_everything_and_gets_out_again(browser):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    names = []
    for _ in range(120):
        ActionChains(browser).send_keys(Keys.TAB).perform()
        names.append(
            browser.execute_script(
                "const e = document.activeElement;"
                "return e.id || e.getAttribute('href') || e.tagName"
            )
        )
        if names[-1] == "PRE":
            break
    assert names[0] == "#whatif"  # the link that skips all others
    assert names[-1] == "PRE"  # the last element of the page: no trap on the way
    controls = [f"column-{d}" for d in range(len(WORDS))]
    assert [name for name in names if name in controls] == controls
    for extra in ("start", "along", "column-0-missing"):
        assert extra in names
    unnamed = """
        return [...document.querySelectorAll("input, select")].filter(
          (e) => !(e.labels && e.labels.length) && !e.getAttribute("aria-label")).length
    """
    assert browser.execute_script(unnamed) == 0
    ids = browser.execute_script("return [...document.querySelectorAll('[id]')].map((e) => e.id)")
    assert len(ids) == len(set(ids))


def test_focus_can_be_seen(browser):
    node = browser.find_element("id", "column-0")
    from selenium.webdriver.common.keys import Keys

    press(browser, node, Keys.ARROW_RIGHT)
    width = browser.execute_script("return getComputedStyle(arguments[0]).outlineWidth", node)
    assert width == "3px"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_fits_every_width(driver, page, width, scheme):
    look(driver, width=width, scheme=scheme)
    driver.get(page)
    settled(driver)
    size = driver.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
    assert size[0] <= size[1] == width


CONTRAST = """
const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
const light = (colour) => {
  canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
  const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].map((v) => v / 255)
    .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const behind = (e) => {
  for (; e; e = e.parentElement) {
    const colour = getComputedStyle(e).backgroundColor;
    if (colour !== "rgba(0, 0, 0, 0)") return colour;
  }
  return "white";
};
return ["h1", "p", ".soft", "a", "td", "thead th", ".verdict", ".chips .warn", "figcaption", ".big"]
  .flatMap((s) => [...document.querySelectorAll(s)].slice(0, 3)).map((e) => {
    const [a, b] = [light(getComputedStyle(e).color), light(behind(e))].sort((p, q) => q - p);
    return (a + 0.05) / (b + 0.05);
  });
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark_can_be_read(driver, page, scheme):
    look(driver, scheme=scheme)
    driver.get(page)
    settled(driver)
    assert min(driver.execute_script(CONTRAST)) >= 4.5
    back = driver.execute_script("return getComputedStyle(document.body).backgroundColor")
    channels = [int(v) for v in back[4:-1].split(",")]
    assert (max(channels) < 60) == (scheme == "dark")


def test_calibrated_bands_that_cannot_be_promised(driver, tmp_path):
    model = fit(X[:40], Y[:40]).calibrate(X[40:50], Y[40:50])
    path = write_report(model, X[50:], Y[50:], tmp_path / "few.html")
    look(driver)
    driver.get(path.as_uri())
    settled(driver)
    assert "too few held-out rows to promise" in driver.find_element("id", "answer").text
    assert driver.get_log("browser") == []
