"""style_names: what scripts/style checks of the names of functions."""
import os
import re

# Words with which functions of a folder may begin, besides those that the rule below gives.
WORDS = {
    "cluster/coordinator": "local longest release", "cluster/engine": "ceiling clock epoch out",
    "cluster/node": "peer step", "cluster/peers": "epoch proof",
    "cluster/store": "key name older rolled", "src/base": "span", "src/cli": "unknown",
    "src/cli/run": "become elect no say", "src/cli/shared": "cannot unknown",
    "src/client/request": "seq", "src/node/storage": "write",
}


def words(name):
    """Returns the words of a name, and what they may be in the singular."""
    return {re.sub(end + "$", "", word) for word in re.split(r"\W|_", name)
            for end in ("", "s", "es")}


def check_names(tree, functions):
    """A function that other files call begins with a word of its folder's name, of the name of a
    file in it, or of a type that it acts on. (With `pawl` begins what the library offers.)"""
    product = [s for s in tree.sources if s.path.startswith(("src/", "cluster/"))]
    of_folder = {}
    for s in product:
        known = of_folder.setdefault(s.folder, words(s.folder) | {"pawl", "main"}
                                     | set(WORDS.get(s.folder, "").split()))
        known |= words(os.path.basename(s.path))
    for s in product:
        for name, first, _ in functions(s) if s.path.endswith(".c") else ():
            head = " ".join(s.code[first - 1:first + 4])
            if name is None or name.startswith("__") or re.match(r"static\b", head):
                continue
            parameters = re.search(rf"\b{name}\s*\(([^)]*)", head)[1]
            types = words(" ".join(re.findall(r"(?:struct|enum) (\w+)", parameters)))
            if not words(name.split("_")[0]) & (of_folder[s.folder] | types):
                yield (f"{s.path}:{first}: {name} begins with no word of a file in its folder, nor "
                       f"of a type that it acts on")
