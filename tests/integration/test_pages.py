#!/usr/bin/env python3
"""test_pages.py PAWLD PAWL: tests the manual pages that the build makes, and what the shells
complete. They lie next to PAWL."""

import glob
import os
import re
import subprocess
import unittest

import cli_fixture
from cli_fixture import Case, pawl
from test_cli import COMMANDS

# It types a line into a zsh with the completion, presses tab twice, and prints what that shows.
ZSH = r"""
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PS1='zle>'; fpath=($1 \$fpath); autoload -Uz compinit; compinit -u -D"
zpty -w shell "zstyle ':completion:*' list-prompt ''; LISTMAX=1000; stty rows 500 cols 200"
zpty -w shell "print rea\$((1))dy"
# The prompt says that the line editor is there, which a tab needs.
zpty -m -r shell said "*rea1dy*zle>*"
zpty -n -w shell "$2"$'\t\t'
zpty -n -w shell $'\x15'"print en\$((1))d"$'\n'
zpty -m -r shell said "*en1d*"
print -r -- $said
"""


def here(name=""):
    return os.path.join(os.path.dirname(cli_fixture.PAWL), name)


def said(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, timeout=60, **options)


def documented(text):
    """Returns the options that a help text names in its usage lines and its list of options."""
    usage, rest = text.split("\n\n", 1)
    listed = [line[:23] if line[22:23] == " " else line for line in rest.splitlines()
              if line.startswith("  -")]
    return re.findall(r"--[a-z][a-z-]*", "\n".join([usage, *listed]))


class Manual(unittest.TestCase):
    def pages(self):
        pages = [p for section in "158" for p in glob.glob(here("*." + section))]
        self.assertEqual({os.path.basename(p) for p in pages}, {
            "pawl.1", "pawld.8", "pawl.conf.5",
            *("pawl-%s.1" % c for c in [*COMMANDS, "can", "redis-script"])})
        return pages

    def test_nothing_is_wrong_with_the_pages(self):
        for page in self.pages():
            lint = said("mandoc", "-T", "lint", page)
            self.assertEqual((lint.returncode, lint.stdout + lint.stderr), (0, ""), page)
            shown = said("man", "--warnings", "-l", page, env=dict(os.environ, MANWIDTH="80",
                                                                  LC_ALL="C.UTF-8"))
            self.assertEqual((shown.returncode, shown.stderr), (0, ""), page)
            name = os.path.basename(page).rsplit(".", 1)[0]
            whatis = said("lexgrog", page)
            self.assertEqual(whatis.returncode, 0, whatis.stderr)
            self.assertIn('"%s - ' % name, whatis.stdout)

    def test_a_page_says_what_the_help_says(self):
        for command in COMMANDS:
            shown = said("man", "-l", here("pawl-%s.1" % command),
                         env=dict(os.environ, MANWIDTH="1000", LC_ALL="C.UTF-8")).stdout
            words = " ".join(shown.split())
            text = pawl(command, "--help").out.split("\nOptions of all")[0]
            for word in text.replace("usage: ", "").replace("Example:", "").split():
                self.assertIn(word, words, command)

    def test_every_setting_has_its_place_in_the_page_of_the_configuration(self):
        with open(here("pawl.conf.5"), encoding="utf-8") as f:
            page = f.read().replace("\\-", "-")
        root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
        with open(os.path.join(root, "share", "pawld.conf"), encoding="utf-8") as f:
            settings = re.findall(r"(?m)^#?([a-z_]+) = ", f.read())
        self.assertGreater(len(settings), 20)
        for setting in settings:
            self.assertIn(setting, page)


class Shells(Case):
    @staticmethod
    def bash(*words):
        text = ('source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _pawl; printf "%s\\n" '
                '"${COMPREPLY[@]}"')
        return subprocess.run(["bash", "-c", text, here("pawl.bash"), *words], capture_output=True,
                              text=True, check=True).stdout.split()

    @staticmethod
    def fish(line):
        done = said("fish", "--no-config", "-c", 'source "$argv[1]"; complete -C "$argv[2]"', "--",
                    here("pawl.fish"), line)
        assert not done.stderr, done.stderr
        return [row.split("\t")[0] for row in done.stdout.splitlines()]

    def zsh(self, line):
        done = said("zsh", "-f", "-c", ZSH, "zsh", here(), line,
                    env=dict(os.environ, HOME=self.folder, TERM="dumb"))
        self.assertEqual(done.stderr, "")
        return done.stdout

    def test_bash_completes_commands_options_and_words(self):
        self.assertEqual(self.bash("pawl", "wait"), ["wait", "waiters"])
        self.assertEqual(self.bash("pawl", "--endpoints", "x", "acq"), ["acquire"])
        self.assertEqual(self.bash("pawl", "bench", "cy"), ["cycle"])
        self.assertEqual(self.bash("pawl", "cluster", "set-t"), ["set-timing"])
        self.assertEqual(self.bash("pawl", "wait", "k", "--for", "f"), ["free"])
        self.assertEqual(self.bash("pawl", "cert", "node", "--role", "e"), ["embedded"])
        self.assertIn("printf", self.bash("pawl", "run", "k", "--", "print"))
        for command in COMMANDS:
            text, offered = pawl(command, "--help").out, self.bash("pawl", command, "--")
            for option in offered:
                self.assertRegex(text, r"(?m)%s( |$|\])" % option)
            self.assertEqual(set(documented(text)) - set(offered), set(), command)

    def test_fish_completes_commands_options_and_words(self):
        self.assertEqual(self.fish("pawl acq"), ["acquire"])
        self.assertEqual(sorted(self.fish("pawl cluster set-")), ["set-nodes", "set-timing"])
        self.assertEqual(sorted(self.fish("pawl wait k --for ")), ["free", "held"])
        for command in COMMANDS:
            offered = self.fish("pawl %s --" % command)
            self.assertEqual(set(documented(pawl(command, "--help").out)) - set(offered), set(),
                             command)

    def test_zsh_completes_commands_options_and_words(self):
        self.assertIn("acquire", self.zsh("pawl acq"))
        self.assertRegex(self.zsh("pawl cluster set-"), r"(?s)set-nodes.*set-timing")
        self.assertRegex(self.zsh("pawl wait k --for "), r"(?s)held.*free|free.*held")
        shown = self.zsh("pawl run --")
        for option in ("--lease", "--conflict-exit-code", "--endpoints", "--version"):
            self.assertIn(option, shown)


if __name__ == "__main__":
    cli_fixture.main()
