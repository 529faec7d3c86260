#!/usr/bin/env python3
"""pages.py PAWL PAWLD SOURCE OUT COMMAND...: writes the manual pages and what the shells complete
into the directory OUT, from the help that the two programs print and from the files in SOURCE. The
commands must be those that pawl has."""

import collections
import email.utils
import os
import re
import sys

import complete
import man
import table

About = collections.namedtuple("About", "version date")


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as f:
        return f.read()


def about(source):
    """The version and its date are those of the latest entry of the Debian changelog. In a source
    package it is at the top."""
    places = [os.path.join(source, *p, "debian", "changelog") for p in (["packaging"], [])]
    text = read(next(place for place in places if os.path.exists(place)))
    date = email.utils.parsedate_to_datetime(re.search(r"(?m)^ -- .*>  (.*)$", text)[1])
    return About(re.search(r"\((.*?)\)", text)[1], date.strftime("%Y-%m-%d"))


def main(pawl, pawld, source, out, *wanted):
    commands, common = table.commands(pawl), table.common_options(pawl)
    if sorted(c.name for c in commands) != sorted(wanted):
        sys.exit("pages.py: src/cli/meson.build does not list the commands of pawl: %s"
                 % sorted({c.name for c in commands} ^ set(wanted)))
    text, groups = table.overview(pawl)
    this = about(source)
    pages = {"pawl-%s.1" % c.name: man.command_page(c, this) for c in commands}
    pages["pawl.1"] = man.overview_page(text, groups, common, this)
    pages["pawld.8"] = man.daemon_page(table.said(pawld, "--help"), this)
    pages["pawl.conf.5"] = man.configuration_page(
        read(source, "docs", "operations", "reference.md"), this)
    files = {name: "\n".join(lines) + "\n" for name, lines in pages.items()}
    template = read(source, "src", "cli", "completion.bash")
    files["pawl.bash"] = complete.bash(template, commands, common)
    files["_pawl"] = complete.zsh(commands, common)
    files["pawl.fish"] = complete.fish(commands, common)
    for name, content in files.items():
        with open(os.path.join(out, name), "w", encoding="utf-8") as f:
            f.write(content)


if __name__ == "__main__":
    main(*sys.argv[1:])
