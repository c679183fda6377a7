"""A real Chromium without a window, driven through chromedriver with the W3C WebDriver protocol. Standard library only."""
import base64
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest
import urllib.error
import urllib.request

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the protocol's key of an element's reference
ENTER, TAB, ESCAPE, SHIFT = "\ue007", "\ue004", "\ue00c", "\ue008"
DEADLINE_S = 120  # of one wait; a busy machine is slow

LOOK = """
const done = arguments[arguments.length - 1];
const look = () => {
  let value;
  try { value = (() => { return (%s); })(); } catch (error) { return done({ error: String(error) }); }
  if (value) done({ value }); else requestAnimationFrame(look);
};
look();
"""


def require_browser():
    """The paths of browser and driver; skips the tests where one is missing."""
    found = [shutil.which(name) for name in ("chromium", "chromedriver")]
    if None in found:
        raise unittest.SkipTest("missing browser (tools/install_packages browser)")
    return found


class Browser:
    def __init__(self):
        chromium, driver = require_browser()
        self.home = tempfile.TemporaryDirectory(prefix="winnow-browser-")
        environment = {**os.environ, "HOME": self.home.name, "XDG_CONFIG_HOME": self.home.name, "XDG_CACHE_HOME": self.home.name}
        self.driver = subprocess.Popen([driver, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment)
        self.session = None
        for line in self.driver.stdout:
            found = re.search(r"on port (\d+)", line)
            if found and "success" in line:
                self.url = f"http://127.0.0.1:{found[1]}/session"
                break
        else:
            raise RuntimeError("chromedriver ended")
        arguments = ["--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", f"--user-data-dir={self.home.name}/profile"]
        if os.geteuid() == 0:
            arguments.append("--no-sandbox")  # Chromium's sandbox refuses root
        options = {"goog:chromeOptions": {"binary": chromium, "args": arguments}, "goog:loggingPrefs": {"browser": "ALL"}}
        session = self._call("POST", "", {"capabilities": {"alwaysMatch": {"browserName": "chrome", **options}}})
        self.session = session["sessionId"]
        self.url += "/" + self.session
        self._call("POST", "/timeouts", {"script": 1000 * DEADLINE_S, "pageLoad": 1000 * DEADLINE_S})

    def close(self):
        if self.session:
            self._call("DELETE", "")
        self.driver.terminate()
        self.driver.wait()
        self.driver.stdout.close()
        self.home.cleanup()

    def _call(self, method, path, body=None):
        data = json.dumps(body if body is not None else {}).encode() if method == "POST" else None
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request) as reply:
                return json.load(reply)["value"]
        except urllib.error.HTTPError as error:
            told = json.load(error)["value"]
            raise RuntimeError(f"{path}: {told['error']}: {told['message'].splitlines()[0]}") from None

    def open(self, url):
        self._call("POST", "/url", {"url": url})

    def script(self, code, *arguments):
        """The value of the function body `code`."""
        return self._call("POST", "/execute/sync", {"script": code, "args": list(arguments)})

    def value(self, expression):
        return self.script(f"return ({expression});")

    def wait(self, expression):
        """The first true value of the expression, which is looked at on every frame."""
        try:
            found = self._call("POST", "/execute/async", {"script": LOOK % expression, "args": []})
        except RuntimeError as error:
            raise AssertionError(f"waited for: {expression}; {error}; the page shows: {self.value('document.body.innerText')}") from None
        if "error" in found:
            raise AssertionError(f"{expression}: {found['error']}")
        return found["value"]

    def _element(self, selector):
        return self._call("POST", "/element", {"using": "css selector", "value": selector})[ELEMENT]

    def click(self, selector):
        self._call("POST", f"/element/{self._element(selector)}/click")

    def type(self, selector, text):
        """Into an element; for a file input, the path of a file."""
        self._call("POST", f"/element/{self._element(selector)}/value", {"text": text})

    def clear(self, selector):
        self._call("POST", f"/element/{self._element(selector)}/clear")

    def press(self, *keys):
        """Keys held together, to whatever has the focus."""
        strokes = [{"type": "keyDown", "value": key} for key in keys] + [{"type": "keyUp", "value": key} for key in reversed(keys)]
        self._call("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": strokes}]})

    def role(self, selector):
        """What assistive technology is told of an element: (role, name)."""
        place = f"/element/{self._element(selector)}"
        return self._call("GET", place + "/computedrole"), self._call("GET", place + "/computedlabel")

    def devtools(self, command, **parameters):
        return self._call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def console(self):
        """What the page logged since the last look."""
        return self._call("POST", "/se/log", {"type": "browser"})

    def screenshot(self):
        return base64.b64decode(self._call("GET", "/screenshot"))
