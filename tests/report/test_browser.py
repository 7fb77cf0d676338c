"""The page in a real browser: it draws, plays and sorts, says no error, and runs no stranger."""

import json
import shutil
import warnings
from itertools import pairwise

import pytest
from report_toy import three_seeds, write_fit, write_run

from spacql.report import report

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
WHY = "NO BROWSER: install chromium and chromium-driver to test the report as people see it"
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage",
)  # fmt: skip
if not (BROWSER and DRIVER):
    warnings.warn(WHY, stacklevel=1)
pytestmark = pytest.mark.skipif(not (BROWSER and DRIVER), reason=WHY)
HOSTILE = '<script>document.title="owned"</script><img src=x onerror="document.title=1">'


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    webdriver = pytest.importorskip("selenium.webdriver")
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    three_seeds(folder / "a", "spacql", 70)
    three_seeds(folder / "b", "cfcql", 50)
    return report([folder], folder / "report.html")


@pytest.fixture
def opened(browser, page):
    browser.get(page.as_uri())
    yield browser
    assert browser.get_log("browser") == []


def find(browser, selector):
    return browser.find_element("css selector", selector)


def all_of(browser, selector):
    return browser.find_elements("css selector", selector)


PIXELS = """
const canvas = document.querySelector("canvas"), copy = document.createElement("canvas");
copy.width = canvas.width; copy.height = canvas.height;
const pen = copy.getContext("2d", { willReadFrequently: true });
pen.drawImage(canvas, 0, 0);
const { data } = pen.getImageData(0, 0, copy.width, copy.height);
let sum = 0, seen = new Set();
for (let k = 0; k < data.length; k += 4) if (data[k + 3]) {
  seen.add(data[k] + 256 * data[k + 1] + 65536 * data[k + 2]);
  sum = (sum * 31 + k + data[k]) % 1000000007;
}
return [seen.size, sum];
"""


def picture(browser):
    return tuple(browser.execute_script(PIXELS))


def wait(browser, condition, seconds=10):
    from selenium.webdriver.support.wait import WebDriverWait

    return WebDriverWait(browser, seconds, poll_frequency=0.05).until(lambda _: condition())


def test_charts_are_drawn_inside_their_frames(opened):
    for path in all_of(opened, "#training .series .mean"):
        box = opened.execute_script("return arguments[0].getBoundingClientRect()", path)
        assert box["width"] > 100
        assert box["height"] > 50
    dots = all_of(opened, "#scores .strip .centre")
    boxes = [opened.execute_script("return arguments[0].getBoundingClientRect()", d) for d in dots]
    assert len(boxes) == 2
    assert boxes[0]["x"] > boxes[1]["x"]  # 70 lies right of 50


def test_the_episode_is_drawn_plays_pauses_and_steps(opened):
    colours, shown = picture(opened)
    assert colours > 20
    find(opened, "[data-do=back]").click()
    assert picture(opened)[1] != shown
    find(opened, "[data-do=next]").click()
    assert picture(opened)[1] == shown
    play, said = find(opened, "[data-do=play]"), find(opened, ".said")
    play.click()
    assert play.get_attribute("aria-label") == "Pause"
    wait(opened, lambda: 2 < int(said.text.split()[1]) < 25)  # a slow machine misses some
    play.click()
    assert play.get_attribute("aria-label") == "Play"
    paused = said.text
    opened.execute_async_script("setTimeout(arguments[0], 400)")
    assert said.text == paused
    play.send_keys(" ")  # by keyboard, to the end
    wait(opened, lambda: "Step 25 of 25" in said.text)
    assert picture(opened)[1] == shown


def test_another_team_and_episode_can_be_chosen(opened):
    _, shown = picture(opened)
    find(opened, "[data-pick=episode] option:nth-child(2)").click()
    assert picture(opened)[1] != shown


def test_tables_sort_both_ways_by_number_and_by_name(opened):
    def names():
        return [cell.text for cell in all_of(opened, "#scores tbody th")]

    buttons = all_of(opened, "#scores thead button")
    assert [button.text for button in buttons] == ["algorithm", "score", "95 % interval", "seeds"]
    assert names() == ["spacql", "cfcql"]
    buttons[1].click()
    assert names() == ["cfcql", "spacql"]
    assert find(opened, "#scores th[aria-sort]").get_attribute("aria-sort") == "ascending"
    buttons[1].click()
    assert names() == ["spacql", "cfcql"]
    buttons[0].send_keys("\ue007")  # Enter
    assert names() == ["cfcql", "spacql"]


def test_arrow_keys_read_the_values_of_every_seed(opened):
    frame = find(opened, "#training .frame")
    frame.send_keys("\ue014")  # right
    tip = find(opened, "#tip").text
    assert tip.startswith("round 10\n")
    assert "spacql: 11 (10, 11, 12)" in tip


def test_a_pressed_name_leaves_its_line_alone(opened):
    find(opened, "#training .series-legend button").click()
    alone = [line.get_attribute("data-name") for line in all_of(opened, "#training .alone")]
    assert alone == ["spacql"]


@pytest.mark.parametrize("width", [360, 768, 1400])
def test_nothing_sticks_out_of_a_phone_or_a_desk(opened, width):
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}
    opened.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    wide = opened.execute_script("return document.documentElement.scrollWidth")
    opened.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert wide <= width


def test_dark_is_dark_and_light_is_light(opened):
    shades = []
    for scheme in ("dark", "light"):
        wanted = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        opened.execute_cdp_cmd("Emulation.setEmulatedMedia", wanted)
        script = "return getComputedStyle(document.body).backgroundColor"
        shades.append(sum(int(v) for v in opened.execute_script(script)[4:-1].split(",")))
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert shades[0] < 150 < 700 < shades[1]


def test_a_hostile_name_is_shown_and_does_not_run(browser, tmp_path):
    write_run(tmp_path / "a", algorithm=HOSTILE, dataset=HOSTILE)
    path = report([tmp_path], tmp_path / "report.html", title="calm")
    browser.get(path.as_uri())
    assert browser.title == "calm"
    assert not all_of(browser, "img")
    assert HOSTILE in find(browser, "main").text
    assert HOSTILE in find(browser, ".film-name").text
    assert browser.get_log("browser") == []


def test_a_script_that_got_into_the_page_would_not_run_either(browser, page, tmp_path):
    hurt = tmp_path / "hurt.html"
    hurt.write_text(page.read_text().replace("</main>", HOSTILE + "</main>"))
    browser.get(hurt.as_uri())
    assert browser.title not in ("owned", "1")
    assert any("Content Security Policy" in e["message"] for e in browser.get_log("browser"))


def test_a_phone_shows_the_interval_and_fewer_ticks_and_does_without_the_bound(browser, tmp_path):
    fit = write_fit(tmp_path / "fit", {"bc": -25.0, "aspac": -15.0})
    described = json.loads((fit / "fit.json").read_text())
    for row in described["table"]:
        row["bound"] = row["mean"] - 1
    (fit / "fit.json").write_text(json.dumps(described))
    size = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(report([fit], tmp_path / "report.html").as_uri())
    heads = [button.text for button in all_of(browser, "#scores thead button") if button.text]
    ticks = [tick.rect for tick in all_of(browser, "#scores .ticks span") if tick.is_displayed()]
    table, around = (
        find(browser, f"#scores {place}").rect["width"] for place in ("table", ".wide")
    )
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert heads == ["policy", "return", "90 % interval"]
    assert table <= around
    assert len(ticks) > 1
    for left, right in pairwise(ticks):
        assert left["x"] + left["width"] < right["x"]


def test_the_page_of_a_fit_is_drawn_and_fits_a_phone(browser, tmp_path):
    long_name = "aspac-with-a-label-of-some-length"
    fit = write_fit(tmp_path / "fit", {"bc": 101.0, long_name: 150.0}, task=HOSTILE)
    size = {"width": 360, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(report([fit], tmp_path / "report.html", title="calm").as_uri())
    wide = browser.execute_script("return document.documentElement.scrollWidth")
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert wide <= 360
    assert browser.title == "calm"
    assert len(all_of(browser, "#scores .strip .centre")) == 2
    assert browser.get_log("browser") == []
