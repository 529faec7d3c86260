"""Finds the places of the mutants' edits.

An edit names what it changes, not the file: a function, a table, a struct or a macro. Its text must
occur exactly once in everything that has this name in the product's sources. So a row of the table
survives when code moves from file to file. The text is compared token by token; white space, line
breaks and comments do not count, so that a row survives another layout, too.
"""
import glob
import os
import re

SOURCES = "cluster/**/*.[ch]", "src/**/*.[ch]"
GAP = r"(?:\s|/\*(?:[^*]|\*(?!/))*\*/|//[^\n]*)"  # This may stand between two tokens.
TOKEN = re.compile(
    r"\s+|(?P<comment>/\*.*?\*/|//[^\n]*)"
    r"|(?P<token>\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])+'|\w+|[^\w\s])", re.S)
HEAD = re.compile(r"(?:struct|enum|union) (\w+) \{|.*?(\w+)(?:\[\w*\])* = \{"
    r"|(?:.*?__attribute__\(\(\w+\)\) )?.*?(\w+)\(")


class Problem(Exception):
    """An edit applies nowhere, or in several places."""


def definitions(text):
    """Yields (name, begin, end) of each definition. A definition begins in the first column and
    ends with a brace there, or is a macro."""
    head = macro = None
    at = 0
    for line in text.splitlines(keepends=True):
        end = at + len(line)
        if macro is None and line.startswith("#define "):
            macro = at
        if macro is not None:
            if not line.endswith("\\\n"):
                yield re.match(r"#define (\w+)", text[macro:]).group(1), macro, end
                macro = None
        elif head is not None and line.startswith("}"):
            match = HEAD.match(text[head:])
            if match:
                yield next(filter(None, match.groups())), head, end
            head = None
        elif (head is None and re.match(r"[A-Za-z_]", line)
              and not line.rstrip().endswith((";", ":"))):
            head = at
        elif head is not None and line.startswith(")"):
            head = None
        at = end


def pattern_of(text):
    """Matches the text in any layout and with any comments."""
    tokens = [match["token"] for match in TOKEN.finditer(text) if match["token"]]
    pattern = re.escape(tokens[0])
    for before, token in zip(tokens, tokens[1:]):
        words = re.match(r"\w", before[-1]) and re.match(r"\w", token)
        pattern += GAP + ("+" if words else "*") + re.escape(token)
    return re.compile(pattern)


class Anchors:
    def __init__(self, root):
        self.root = root
        # For each name: [(path, text)].
        self.places = {}
        for path in sorted(p for pattern in SOURCES
                           for p in glob.glob(os.path.join(root, pattern), recursive=True)):
            with open(path, encoding="utf-8") as source:
                text = source.read()
            for name, begin, end in definitions(text):
                self.places.setdefault(name,
                                       []).append((os.path.relpath(path, root), text[begin:end]))

    def path(self, edit):
        """Returns the file that has the edit's text."""
        places = self.places.get(edit["in"])
        if not places:
            raise Problem("the sources have no definition of %s" % edit["in"])
        pattern = pattern_of(edit["old"])
        found = [path for path, text in places for _ in pattern.finditer(text)]
        if len(found) != 1:
            raise Problem("the text occurs %d times in %s: %s"
                          % (len(found), edit["in"], edit["old"].strip().splitlines()[0]))
        return found[0]

    def apply(self, edits):
        """Returns {file: its text after the edits}."""
        texts = {}
        for edit in edits:
            path = self.path(edit)
            if path not in texts:
                with open(os.path.join(self.root, path), encoding="utf-8") as source:
                    texts[path] = source.read()
            pattern = pattern_of(edit["old"])
            for name, begin, end in definitions(texts[path]):
                found = (list(pattern.finditer(texts[path], begin, end))
                         if name == edit["in"] else [])
                if len(found) == 1:
                    texts[path] = (texts[path][:found[0].start()] + edit["new"].strip()
                                   + texts[path][found[0].end():])
                    break
            else:
                raise Problem("an edit before it has changed the text in %s: %s"
                              % (edit["in"], edit["old"].strip().splitlines()[0]))
        return texts
