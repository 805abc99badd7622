"""The report's JavaScript, run where it will be: in Chromium, or if there is none, in Node."""

import json
import math
import shutil
import subprocess
from pathlib import Path

import pytest

import tensorlace.report

ENGINE = Path(tensorlace.report.__file__).parent / "assets" / "engine.js"

_CALL = """
const model = tensorlace.load(input.model);
return input.rows.map((row) => {
  return tensorlace.predict(model, row.map((v) => (v === null ? NaN : v)));
});
"""


def find_chromium():
    """Paths of the browser and its driver, or None."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    driver = shutil.which("chromedriver")
    return (browser, driver) if browser and driver else None


def open_browser(folder, *arguments):
    """A headless Chromium that keeps a log of its console and of its requests."""
    from selenium import webdriver

    browser, driver = find_chromium()
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for argument in (
        *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
        *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
        *("--disable-dev-shm-usage", "--hide-scrollbars", f"--user-data-dir={folder}"),
        *arguments,
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options, webdriver.ChromeService(driver))


class JavaScript:
    """Runs the body of a function of ``tensorlace`` and ``input``."""

    def run(self, body, content):
        raise NotImplementedError

    def predict(self, model, rows):
        """What the page says of rows."""
        return self.run(_CALL, {"model": model, "rows": plain(rows)})


class Node(JavaScript):
    """In Node, one process per call."""

    def run(self, body, content):
        program = f"const tensorlace = require({json.dumps(str(ENGINE))});\n"
        program += "const input = JSON.parse(require('fs').readFileSync(0, 'utf8'));\n"
        program += f"process.stdout.write(JSON.stringify((() => {{{body}}})()));"
        done = subprocess.run(
            ["node", "-e", program],
            input=json.dumps(content),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


class Chromium(JavaScript):
    """In an empty page of a browser."""

    def __init__(self, driver):
        self.driver = driver
        driver.get("about:blank")
        driver.execute_script(f"{ENGINE.read_text()}; window.engine = tensorlace;")

    def run(self, body, content):
        script = f"const input = arguments[0]; const tensorlace = window.engine; {body}"
        return self.driver.execute_script(script, content)


def plain(rows):
    """Rows for JSON, which has no NaN."""
    return [[None if math.isnan(v) else float(v) for v in row] for row in rows]


@pytest.fixture(scope="session", name="javascript")
def start_javascript(tmp_path_factory):
    """Something with ``predict(model, rows)``."""
    if find_chromium():
        driver = open_browser(tmp_path_factory.mktemp("chromium"))
        yield Chromium(driver)
        driver.quit()
    elif shutil.which("node"):
        yield Node()
    else:
        pytest.skip(
            "neither chromium with chromedriver nor node is installed: nothing runs JavaScript"
        )
