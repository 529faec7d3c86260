"""test_audit_check.py PAWL-SIM PAWL [SEEDS [START]]: pawl audit check finds nothing in what
simulated clusters have answered, whatever goes wrong there but for lies and forced starts."""

import json
import os
import subprocess
import sys
import tempfile

from audit_lines import check, runs

SIM, PAWL = sys.argv[1:3]
SEEDS, START = (sys.argv[3:] + ["30", "1"][len(sys.argv) - 3:])[:2]


def main():
    grants = failed = judged = 0
    with tempfile.TemporaryDirectory() as folder:
        history = os.path.join(folder, "history")
        subprocess.run([SIM, "--seeds", SEEDS, "--start", START, "--check-every", "0",
                        "--history", history], check=True, stdout=subprocess.DEVNULL)
        for seed, jumps, lines in runs(history):
            if jumps:
                continue
            result = check(PAWL, folder, lines)
            judged += 1
            grants += result["grants"]
            if result["findings"]:
                failed += 1
                print("seed %s: %s" % (seed, json.dumps(result["findings"][0])))
    print("%d runs, %d grants, %d with findings" % (judged, grants, failed))
    return int(failed > 0 or grants == 0)


if __name__ == "__main__":
    sys.exit(main())
