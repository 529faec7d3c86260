"""test_documents.py: tests that the links of the documents lead somewhere, in the repository and as
the packages have them."""

import glob
import os
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# What packaging/debian/rules copies.
PAGES = {"pawl": ["README.md", "docs"],
         "python3-pawl": ["bindings/python/README.md"]}
CODE = re.compile(r"(?ms)^ *```.*?^ *```|`[^`\n]*`")


def pages(top):
    for folder, _, names in os.walk(top):
        yield from (os.path.join(folder, name) for name in names if name.endswith(".md"))


def anchors(page):
    """Returns the names by which links may name the headings of a page."""
    found = set()
    with open(page, encoding="utf-8") as f:
        text = re.sub(r"(?ms)^```.*?^```", "", f.read())
    for heading in re.findall(r"(?m)^#+ (.*)$", text):
        heading = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        name = re.sub(r"[^\w\- ]", "", heading).replace(" ", "-")
        while name in found:
            name += "-1"
        found.add(name)
    return found | set(re.findall(r'<a id="([^"]+)">', text))


def dead_links(page):
    with open(page, encoding="utf-8") as f:
        text = CODE.sub("", f.read())
    for target in re.findall(r"\]\(([^()\s]+)\)", text):
        path, _, anchor = target.partition("#")
        there = os.path.join(os.path.dirname(page), path) if path else page
        if re.match(r"[a-z]+:", target):
            continue
        if not os.path.exists(there):
            yield "%s: %s" % (page, target)
        elif anchor and there.endswith(".md") and anchor not in anchors(there):
            yield "%s: %s is no heading there" % (page, target)


class Links(unittest.TestCase):
    def test_the_links_of_the_repository_lead_somewhere(self):
        listed = subprocess.run(["git", "-C", ROOT, "ls-files", "*.md"], capture_output=True,
                                text=True).stdout.split()
        found = ([os.path.join(ROOT, name) for name in listed]
                 or [*pages(os.path.join(ROOT, "docs")), os.path.join(ROOT, "README.md")])
        self.assertGreater(len(found), 20)
        self.assertEqual([dead for page in found for dead in dead_links(page)], [])

    def test_no_link_of_an_installed_page_is_dead(self):
        folder = tempfile.mkdtemp(prefix="pawl-documents-")
        self.addCleanup(shutil.rmtree, folder)
        with open(os.path.join(ROOT, "packaging", "debian", "rules"), encoding="utf-8") as f:
            rules = f.read()
        for package, paths in PAGES.items():
            self.assertIn("packaging/documents debian/documents/%s %s\n"
                          % (package, " ".join(paths)), rules)
            there = os.path.join(folder, package)
            program = os.path.join(ROOT, "packaging", "documents")
            subprocess.run([program, there, *paths], check=True, cwd=ROOT)
            found = list(pages(there))
            self.assertTrue(found)
            self.assertEqual([dead for page in found for dead in dead_links(page)], [])
        guide = os.path.join(folder, "pawl", "docs", "client-guide.md")
        with open(guide, encoding="utf-8") as f:
            text = f.read()
        self.assertIn("](guarantees.md)", text)  # A link that leads somewhere stays.
        self.assertNotIn("](../include/", text)  # The header is in another package.
        self.assertIn("pawl.h", text)


def files_below(*folders):
    for folder in folders:
        for top, _, names in os.walk(os.path.join(ROOT, folder)):
            yield from (os.path.join(top, name) for name in names)


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def names_of(page):
    """Returns the names by which a comment may cite what a page says, in small letters."""
    text = read(page)
    names = {re.sub(r"\s+", " ", "".join(name)).strip(".:`").lower()
             for name in re.findall(r"(?m)^#+ (?:\d+\. )?(.*)$|\*\*([^*]+)\*\*"
                                    r"|^\d+\. \*(\w+)\*", text)}
    names |= {name.replace("-", " ") for name in re.findall(r'<a id="([^"]+)">', text)}
    return names - {""}


def is_named(cited, names):
    """Whether what is cited begins with one of the names, or is the beginning of one."""
    return any(cited.lower().startswith(name) or name.startswith(cited.lower()) for name in names)


def commented():
    """Yields the files that cite pages in comments, and their texts without the ends of lines."""
    endings = (".c", ".h", ".py", ".toml", ".sh", ".build", ".conf", ".ini", ".yml", ".yaml")
    for path in files_below("cluster", "src", "include", "tests", "bindings", "examples", "scripts",
                            "packaging", "share", os.path.join("docs", "guide", "examples")):
        if path.endswith(endings) or is_script(path):
            yield path, re.sub(r"\n[ \t]*(?:\*|#|//)?[ \t]*", " ", read(path))


def is_script(path):
    with open(path, "rb") as f:
        return f.read(2) == b"#!"


class Pages(unittest.TestCase):
    """Comments cite the pages of docs by heading or rule: (docs/security.md, Shares)."""
    maxDiff = None
    CITATION = re.compile(r"(?<![\w/-])(docs/[\w/-]+\.md)(?:(?:, | \()([A-Z][^][.,;:()\"]*))?")

    def names(self, page):
        """A name without a section is looked up in the table of sections, so it must be there."""
        path = os.path.join(ROOT, page)
        if page != "docs/protocol.md":
            return names_of(path)
        rows = re.findall(r"(?m)^\| \[\d+\. .* \| (.*) \|$", read(path))
        return {name.strip(" .").lower() for row in rows for name in re.split("[;,]", row)}

    def test_what_is_cited_is_there(self):
        names, wrong, count = {}, [], 0
        for path, text in commented():
            for page, cited in self.CITATION.findall(text):
                count += 1
                if page not in names:
                    there = os.path.exists(os.path.join(ROOT, page))
                    names[page] = self.names(page) if there else None
                if names[page] is None or cited and not is_named(cited, names[page]):
                    wrong.append("%s: %s, %s" % (path, page, cited))
        self.assertGreater(count, 300)
        self.assertEqual("\n".join(wrong), "")


class Protocol(unittest.TestCase):
    """docs/protocol has a page for each section. The code, the tests and the mutants cite its rules
    by section and name; each rule leads to the stories without it (why/), and they lead back."""
    maxDiff = None
    PAGES = [os.path.join(ROOT, "docs", "protocol.md"),
             *sorted(glob.glob(os.path.join(ROOT, "docs", "protocol", "*.md")))]
    CITATION = re.compile(r"(?<![\w-])section (\d+),? (?:rule )?([A-Z][^][.,;:()\"]*)")

    def names(self):
        """Returns {section: the names in it that may be cited, in small letters}."""
        found = {}
        for page in self.PAGES:
            for number in re.findall(r"(?m)^#+ (\d+)\. ", read(page)):
                found[number] = names_of(page)
        return found

    def test_what_is_cited_is_there(self):
        names, wrong, count = self.names(), [], 0
        self.assertEqual(len(names), 11)
        for path, text in [*commented(),
                           *((page, re.sub(r"\s+", " ", read(page))) for page in self.PAGES)]:
            for number, cited in self.CITATION.findall(text):
                count += 1
                if not is_named(cited, names.get(number, set())):
                    wrong.append("%s: section %s, %s" % (path, number, cited))
        self.assertGreater(count, 500)
        self.assertEqual("\n".join(wrong), "")

    def test_rules_and_their_stories_lead_to_each_other(self):
        for page in self.PAGES[1:]:
            name = os.path.basename(page)
            there = re.findall(r"\[Why\]\(why/%s#([\w-]+)\)" % name, read(page))
            back = re.findall(r"(?m)^#+ \[.*\]\(\.\./%s#([\w-]+)\)$" % name,
                              read(os.path.join(os.path.dirname(page), "why", name)))
            self.assertTrue(there)
            self.assertEqual(sorted(there), sorted(back), name)

    def test_the_brief_names_every_rule(self):
        named = re.findall(r"\[[^]]+\]\(protocol/(\w+\.md#[\w-]+)\)",
                           read(self.PAGES[0]).split("\n## All rules by name\n")[1])
        rules = [f"{os.path.basename(page)}#{rule}" for page in self.PAGES[1:]
                 for rule in re.findall(r'<a id="([\w-]+)">', read(page))]
        self.assertEqual(sorted(named), sorted(rules))


class Record(unittest.TestCase):
    """docs/testing-record.md names for each fault a test, a mutant or a script that exists."""
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.tests, cls.mutants, cls.files = set(), set(), set()
        for path in files_below("tests", os.path.join("bindings", "python", "tests"),
                                os.path.join("bindings", "go")):
            name, ending = os.path.splitext(os.path.basename(path))
            cls.files |= {name, name + ending}
            if ending == ".c":
                cls.tests |= set(re.findall(r"(?m)^static void (\w+)\(void \*\*state\)",
                                            read(path)))
            elif ending == ".py":
                found = re.findall(r"(?m)^ *(?:async )?(?:def|class) (\w+)", read(path))
                cls.tests |= set(found) | {"%s.%s" % (name, one) for one in found}
            elif name.endswith("_test") and ending == ".go":
                cls.tests |= set(re.findall(r"(?m)^func (Test\w+)\(", read(path)))
            elif ending == ".toml":
                cls.mutants |= set(re.findall(r'(?m)^name = "(.*)"$', read(path)))

    def is_there(self, name):
        words = name.split(".")
        return (name in self.tests | self.files or os.path.exists(os.path.join(ROOT, name))
                or (len(words) == 3 and ".".join(words[:2]) in self.tests
                    and words[2] in self.tests))

    def rows(self):
        for line in read(os.path.join(ROOT, "docs", "testing-record.md")).splitlines():
            cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            if line.startswith("| ") and cells != ["fault", "found by", "since", "held by"]:
                yield cells

    def test_each_row_names_something_that_exists(self):
        rows, wrong = list(self.rows()), []
        for row in rows:
            named = re.findall(r"`([^`]+)`", row[-1]) if len(row) == 4 else []
            mutants = re.findall(r'"([^"]+)"', row[-1])
            there = [name for name in named if self.is_there(name)]
            # A word that is no name of a test is a step, a theme or a place.
            gone = [name for name in set(named) - set(there)
                    if re.search(r"^test|^scripts/|_.*_|[.]", name) and "/var" not in name]
            wrong += [(row[0], name) for name in gone + sorted(set(mutants) - self.mutants)]
            if not there and not mutants and "scripts/test" not in row[-1]:
                wrong.append((row[0], "it names no test"))
        self.assertGreater(len(rows), 250)
        self.assertEqual("\n".join(": ".join(pair) for pair in wrong), "")


if __name__ == "__main__":
    unittest.main(verbosity=2)
