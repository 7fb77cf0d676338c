"""`make fuzz`: every door, ten thousand cases or more, a line each. Exits 1 if one is unsound."""

import argparse
import json
import logging
import os
import resource
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
LIMIT = 4 << 30  # bytes that the process may hold: a file that asks for more is seen


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=15_000, help="in all, about")
    parser.add_argument("--first", type=int, default=0, help="number of each door's first case")
    parser.add_argument("--only", nargs="*", default=[], help="names of doors")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    from spacql.threads import one_thread

    os.environ.update(one_thread(os.environ))
    logging.disable(logging.CRITICAL)
    from hostile_all import DOORS, prepare
    from hostile_harness import run_door

    prepare()
    resource.setrlimit(resource.RLIMIT_DATA, (LIMIT, LIMIT))
    doors = {name: door for name, door in DOORS.items() if not options.only or name in options.only}
    shares = sum(share for _, share in doors.values())
    tallies = []
    for name, (door, share) in doors.items():
        tally = run_door(name, door, round(options.cases * share / shares), options.first)
        tallies.append(tally)
        if not options.json:
            print(tally.line(), flush=True)
            for what in [*tally.untyped, *tally.executed, *tally.outside][:20]:
                print(f"    {what}")
    total = {
        "doors": len(tallies),
        "cases": sum(t.cases for t in tallies),
        "refused": sum(t.refused for t in tallies),
        "untyped": sum(len(t.untyped) for t in tallies),
        "executed": sum(len(t.executed) for t in tallies),
        "outside": sum(len(t.outside) for t in tallies),
    }
    if options.json:
        print(json.dumps({"total": total, "doors": [vars(t) for t in tallies]}, indent=1))
    else:
        print(", ".join(f"{count:,} {what}" for what, count in total.items()))
    return 0 if all(tally.sound for tally in tallies) else 1


if __name__ == "__main__":
    sys.exit(main())
