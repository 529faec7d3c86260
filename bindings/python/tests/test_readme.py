"""The examples of README.md do what they say."""

import contextlib
import io
import os
import re
import tempfile
import unittest

from nodes import Case

README = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "README.md")


def examples():
    with open(README, encoding="utf-8") as f:
        return re.findall(r"```python\n(.*?)```", f.read(), re.S)


async def write_all(token):
    assert token > 0


class Readme(Case):
    def test_every_example_runs(self):
        found = examples()
        self.assertGreaterEqual(len(found), 7)
        work = iter([True, True, False])
        with tempfile.TemporaryDirectory() as folder:
            for number, text in enumerate(found):
                names = dict(
                    NODES=self.endpoints,
                    STATE_DIR=folder,
                    token=7,
                    write_part=lambda part, token: None,
                    write_all=write_all,
                    work_to_do=lambda: next(work),
                    do_some_work=lambda token: None,
                    call=lambda value: None,
                    write_the_report=lambda: None,
                    refuse=self.fail,
                )
                with self.subTest(example=number), contextlib.redirect_stdout(io.StringIO()):
                    exec(compile(text, "%s, example %d" % (README, number), "exec"), names)
        self.assertEqual(next(work, "over"), "over")


if __name__ == "__main__":
    unittest.main()
