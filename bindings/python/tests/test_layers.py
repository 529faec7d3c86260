"""Tests that the package has the rooms of libpawl (`client_rooms` in src/client/meson.build), that
imports go one way only, and that no two modules import each other."""

import ast
import glob
import os
import re
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.join(os.path.dirname(HERE), "pawl")
LIBPAWL = os.path.join(HERE, "..", "..", "..", "src", "client", "meson.build")
# What stands above the rooms: the client for asyncio, which is "." in libpawl; and the public
# modules and the blocking client, which may import everything.
TOP = ("_client", "_environment")
ABOVE = ("", "aio", "_blocking", "testing", "pytest_plugin")


def rooms():
    """Returns the rooms of libpawl, each with those that it may call and itself."""
    with open(LIBPAWL, encoding="utf-8") as f:
        rows = re.findall(r"^  \['([a-z.]+)', \[([^\]]*)\]", f.read(), re.MULTILINE)
    return {name: {name, *re.findall("[a-z.]+", below)} for name, below in rows}


def imports(name, is_package, source):
    """Yields the modules of the package that this one imports, in whatever function or block."""
    here = name.split(".") if name else []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((a.name.partition(".")[2], "") for a in node.names
                        if a.name.split(".")[0] == "pawl")
        elif isinstance(node, ast.ImportFrom):
            module = node.module.split(".") if node.module else []
            if node.level:
                up = node.level - is_package
                module = here[:len(here) - up] + module if up else here + module
            elif module[:1] == ["pawl"]:
                module = module[1:]
            else:
                continue
            yield from ((".".join(module), a.name) for a in node.names)


def graph(sources):
    """sources: the text of each module, by its name without `pawl.`; that of a package ends in
    `__init__`. Returns the modules that each one imports."""
    texts = {re.sub(r"\.?__init__$", "", name): (name, text) for name, text in sources.items()}
    found = {}
    for short, (name, text) in texts.items():
        found[short] = set()
        for module, part in imports(short, name.endswith("__init__"), text):
            whole = (module + "." + part).strip(".")
            found[short].add(whole if whole in texts else module)
    return found


def upwards(found, may):
    """Returns the imports that go to a room that the importing one may not call."""
    below = {"_" + room: {"_" + one for one in others} for room, others in may.items()}
    below.update((top, {"_" + one for one in may["."]} | set(TOP)) for top in TOP)
    return sorted("%s imports %s" % (module, other) for module, others in found.items()
                  for other in others if module.split(".")[0] not in ABOVE
                  and other.split(".")[0] not in below[module.split(".")[0]])


def circles(found):
    """Returns the modules that import themselves by way of others."""
    def reached(start):
        seen, front = set(), [start]
        while front:
            new = found.get(front.pop(), set()) - seen
            seen |= new
            front += new
        return seen

    return sorted(module for module in found if module in reached(module))


class Layers(unittest.TestCase):
    def package(self):
        found = {}
        for path in glob.glob(os.path.join(PACKAGE, "**", "*.py"), recursive=True):
            with open(path, encoding="utf-8") as f:
                found[os.path.relpath(path, PACKAGE)[:-3].replace(os.sep, ".")] = f.read()
        return graph(found)

    def test_the_rooms_are_those_of_libpawl(self):
        here = {name.split(".")[0] for name in self.package()} - set(ABOVE) - set(TOP)
        self.assertEqual(here, {"_" + room for room in rooms()} - {"_."})

    def test_imports_go_one_way(self):
        found = self.package()
        self.assertGreater(sum(map(len, found.values())), 100)
        self.assertEqual((upwards(found, rooms()), circles(found)), ([], []))

    def test_an_import_that_goes_up_or_round_is_found(self):
        for wrong in ("from .._lock.lock import Lock", "def f():\n    from pawl._lock import lock",
                      "import pawl._lock.lock", "if False:\n    from .. import _lock"):
            found = graph({"_link.link": wrong, "_lock.__init__": "", "_lock.lock": ""})
            self.assertEqual(len(upwards(found, rooms())), 1, wrong)
        self.assertEqual(upwards(graph({"_lock.lock": "from .._link.link import Link\nimport os",
                                        "_link.link": "", "_blocking.lock": "from .. import aio",
                                        "aio": ""}), rooms()), [])
        self.assertEqual(circles(graph({"_lock.a": "from .b import B", "_lock.c": "from . import a",
                                        "_lock.b": "from ._c import C\nfrom .c import C",
                                        "_lock.d": "from .a import A"})),
                         ["_lock.a", "_lock.b", "_lock.c"])


if __name__ == "__main__":
    unittest.main()
