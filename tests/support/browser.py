"""A headless Chromium, where the machine has it."""

import base64
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

ENDS = 60.0  # seconds that a page has to draw its charts


class Browser:
    """One page at a time, as readers of some screens and settings see it."""

    def __init__(self) -> None:
        webdriver = pytest.importorskip("selenium.webdriver")
        program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
        driver = shutil.which("chromedriver")
        if not program or not driver:
            pytest.skip("no Chromium with its driver: apt-get install chromium chromium-driver")
        options = webdriver.ChromeOptions()
        options.binary_location = program
        for argument in ("--headless=new", "--disable-dev-shm-usage", "--disable-gpu", "--hide-scrollbars"):
            options.add_argument(argument)
        if os.geteuid() == 0:
            options.add_argument("--no-sandbox")  # which it has none of for root
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self._driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))

    def open(self, path: Path, width: int, dark: bool) -> None:
        """A file, at a width in pixels; returns when its charts are drawn."""
        told = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self._driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", told)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        self._driver.get(path.as_uri())
        end = time.monotonic() + ENDS
        while not self.ask("return [...document.querySelectorAll('.chart')].every(one => one.dataset.drawn)"):
            assert time.monotonic() < end, (self.console(), "charts are not drawn")
            time.sleep(0.1)

    def ask(self, script: str) -> Any:
        """What a line of JavaScript returns."""
        return self._driver.execute_script(script)

    def press(self, *names: str) -> None:
        """Keys, as selenium names them."""
        from selenium.webdriver import ActionChains, Keys

        for name in names:
            ActionChains(self._driver).send_keys(getattr(Keys, name)).perform()

    def console(self) -> list[str]:
        """Messages since it was asked last."""
        return [one["message"] for one in self._driver.get_log("browser")]

    def picture(self, path: Path) -> bytes:
        """Write the whole page as PNG; returns it."""
        found = self._driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True})
        path.write_bytes(base64.b64decode(found["data"]))
        return path.read_bytes()

    def close(self) -> None:
        """End it."""
        self._driver.quit()
