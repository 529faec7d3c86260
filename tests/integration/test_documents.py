"""test_documents.py: tests that the links of the documents lead somewhere, in the repository and as
the packages have them."""

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


if __name__ == "__main__":
    unittest.main(verbosity=2)
