"""Headless Chromium for tests, driven by its DevTools protocol over two pipes (no driver, no web socket)."""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

# All text and all elements of a page, through the shadow roots that TensorBoard's elements live in.
HELPERS = """
function deep(visit, root) {
  for (const node of (root || document).querySelectorAll('*')) {
    visit(node);
    if (node.shadowRoot) deep(visit, node.shadowRoot);
  }
}
function all(selector, root) {
  const found = [];
  deep(node => { if (node.matches(selector)) found.push(node); }, root);
  return found;
}
function inside(host, selector) {
  return all(host).flatMap(found => all(selector, found.shadowRoot || found));
}
function words() {
  const out = [];
  deep(node => {
    if (['STYLE', 'SCRIPT', 'TEMPLATE'].includes(node.tagName)) return;
    for (const child of node.childNodes)
      if (child.nodeType === 3 && child.textContent.trim()) out.push(child.textContent.trim());
  });
  return out.join('\\n');
}
"""


class Browser:
    """One page of a browser of its own."""

    def __init__(self, width=1280, height=900):
        self._profile = tempfile.mkdtemp(prefix="browser")
        pipes = os.pipe() + os.pipe()
        from_us, self._write, self._read, to_us = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in pipes)
        for end in pipes:
            os.close(end)
        # It reads commands from 3 and answers on 4; a shell puts the pipes there.
        script = 'exec "$0" "$@" 3<&%d 4>&%d' % (from_us, to_us)
        self._process = subprocess.Popen(
            ["bash", "-c", script, CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
             "--no-first-run", "--disable-background-networking", "--remote-debugging-pipe", "--user-data-dir=" + self._profile,
             "--window-size=%d,%d" % (width, height), "about:blank"],
            pass_fds=(from_us, to_us), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(from_us)
        os.close(to_us)
        self._buffer, self._number, self._session = b"", 0, None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Page.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self._session = None
            self.call("Browser.close", patience=10)
            self._process.wait(10)
        except (OSError, TimeoutError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        os.close(self._write)
        os.close(self._read)
        shutil.rmtree(self._profile, ignore_errors=True)

    def call(self, method, patience=60, **params):
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + patience
        while True:
            answer = self._next(end)
            if answer.get("id") == self._number:
                assert "error" not in answer, "%s: %s" % (method, answer["error"])
                return answer["result"]

    def _next(self, end):
        while b"\0" not in self._buffer:
            if not select.select([self._read], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            data = os.read(self._read, 1 << 20)
            if not data:
                raise OSError("the browser is gone")
            self._buffer += data
        text, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(text)

    def open(self, url):
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=url)

    def value(self, expression):
        """What an expression gives on the page; deep, all, inside and words are there to help."""
        result = self.call("Runtime.evaluate", expression="(() => {%s return (%s); })()" % (HELPERS, expression), returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def wait(self, expression, patience=45):
        """Until an expression is true of the page; gives its value."""
        end = time.monotonic() + patience
        while True:
            try:
                value = self.value(expression)
            except AssertionError:  # the page is not there yet
                value = None
            if value or time.monotonic() > end:
                assert value, "never true: %s\nthe page says: %s" % (expression, self.value("words()")[:2000])
                return value
            time.sleep(0.3)

    def picture(self, path):
        """A screenshot, as a PNG."""
        data = self.call("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as stream:
            stream.write(base64.b64decode(data))
