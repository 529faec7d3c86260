"""Drives a headless Chromium by the DevTools protocol. Python's standard library only."""

import base64
import http.client
import json
import os
import shutil
import socket
import struct
import subprocess
import tempfile
import time

PATIENCE = 30.0
NAMES = ("chromium", "chromium-browser", "google-chrome")


def program():
    """The path of the browser, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class WebSocket:
    """The client's side of RFC 6455, as far as the protocol needs it."""

    def __init__(self, host, port, path):
        self.socket = socket.create_connection((host, port), PATIENCE)
        self.socket.sendall((
            "GET %s HTTP/1.1\r\nHost: %s:%d\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Key: %s\r\nSec-WebSocket-Version: 13\r\n\r\n"
            % (path, host, port, base64.b64encode(os.urandom(16)).decode())).encode())
        self.input = self.socket.makefile("rb")
        assert b" 101 " in self.input.readline()
        while self.input.readline() != b"\r\n":
            pass

    def send(self, text):
        data = text.encode()
        size = (bytes([0x80 | len(data)]) if len(data) < 126
                else b"\xfe" + struct.pack(">H", len(data)) if len(data) < 1 << 16
                else b"\xff" + struct.pack(">Q", len(data)))
        # The mask is 0, so that the bytes stay as they are.
        self.socket.sendall(b"\x81" + size + bytes(4) + data)

    def receive(self):
        """Returns the next message."""
        message, last = b"", False
        while not last:
            first, size = self.input.read(2)
            if size == 126:
                size, = struct.unpack(">H", self.input.read(2))
            elif size == 127:
                size, = struct.unpack(">Q", self.input.read(8))
            data = self.input.read(size)
            if first & 15 in (0, 1):
                message += data
                last = bool(first & 0x80)
        return message.decode()

    def close(self):
        self.input.close()
        self.socket.close()


class Browser:
    """A browser with a profile of its own."""

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="pawl-browser-")
        command = [program(), "--headless=new", "--remote-debugging-port=0", "--no-first-run",
                   "--disable-gpu", "--disable-background-networking", "--disable-sync",
                   "--disable-component-update", "--disable-dev-shm-usage",
                   "--user-data-dir=" + self.dir, "about:blank"]
        if os.getuid() == 0:
            command.insert(1, "--no-sandbox")
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        place = os.path.join(self.dir, "DevToolsActivePort")
        end = time.monotonic() + PATIENCE
        lines = []
        while len(lines) < 2:
            assert time.monotonic() < end and self.process.poll() is None
            time.sleep(0.05)
            if os.path.exists(place):
                with open(place, encoding="ascii") as f:
                    lines = f.read().split()
        self.port = int(lines[0])

    def page(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        connection.request("PUT", "/json/new?about:blank")
        target = json.loads(connection.getresponse().read())
        connection.close()
        return Page(self.port, target["webSocketDebuggerUrl"])

    def close(self):
        self.process.terminate()
        self.process.wait(PATIENCE)
        shutil.rmtree(self.dir, ignore_errors=True)


class Page:
    """A tab. It collects what the console shows, and what was asked for over the network."""

    def __init__(self, port, url):
        self.web = WebSocket("127.0.0.1", port, "/" + url.split("/", 3)[3])
        self.last, self.answers = 0, {}
        # (what it is, its text) of each complaint.
        self.console, self.asked = [], []
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def take(self, message):
        said = json.loads(message)
        if "id" in said:
            self.answers[said["id"]] = said
            return
        params = said["params"]
        if said["method"] == "Runtime.exceptionThrown":
            self.console.append(("exception", json.dumps(params["exceptionDetails"])))
        elif said["method"] == "Runtime.consoleAPICalled":
            self.console.append(("console", json.dumps(params["args"])))
        elif said["method"] == "Log.entryAdded":
            self.console.append((params["entry"]["source"], params["entry"]["text"]))
        elif said["method"] == "Network.requestWillBeSent":
            self.asked.append(params["request"]["url"])

    def call(self, method, **params):
        self.last += 1
        self.web.send(json.dumps({"id": self.last, "method": method, "params": params}))
        while self.last not in self.answers:
            self.take(self.web.receive())
        answer = self.answers.pop(self.last)
        assert "error" not in answer, (method, answer["error"])
        return answer["result"]

    def run(self, script):
        """Returns the value of an expression of JavaScript, which may be a promise."""
        done = self.call("Runtime.evaluate", expression=script, returnByValue=True,
                         awaitPromise=True)
        assert "exceptionDetails" not in done, (script, done["exceptionDetails"])
        return done["result"].get("value")

    def wait(self, script):
        """Waits until the expression is true."""
        end = time.monotonic() + PATIENCE
        while not self.run(script):
            assert time.monotonic() < end, "%s is not so; the page is:\n%s" % (
                script, self.run("document.body.innerText"))
            time.sleep(0.1)

    def open(self, url):
        self.call("Page.navigate", url=url)
        self.wait("document.readyState === 'complete' && location.href !== 'about:blank'")

    def size(self, width, height, phone=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=phone)

    def scheme(self, name):
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": name}])

    KEYS = {"Tab": (9, ""), "Enter": (13, "\r"), "Escape": (27, "")}

    def press(self, key):
        code, text = self.KEYS.get(key, (0, key))
        more = {"text": text} if text else {}
        name = key if key in self.KEYS else ""
        self.call("Input.dispatchKeyEvent", type="keyDown", key=name or key, code=name,
                  windowsVirtualKeyCode=code, **more)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=name or key, code=name,
                  windowsVirtualKeyCode=code)

    def picture(self, path):
        data = self.call("Page.captureScreenshot", format="png",
                         captureBeyondViewport=False)["data"]
        with open(path, "wb") as f:
            f.write(base64.b64decode(data))

    def close(self):
        self.web.close()
