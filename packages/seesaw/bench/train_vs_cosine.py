"""Train cosine against Seesaw on real text: under the measured noise scale, and past it.

MARGIN, stated before the run: "equal" means that the mean difference of the final validation
losses (Seesaw minus cosine, five seeds, paired) and its 95 % interval lie within 0.02 nats a byte.
Steps are counted from the trainers' logs.

    python bench/train_vs_cosine.py           # run, then report; an hour and a half on two cores
    python bench/train_vs_cosine.py run PART  # one part only; --logs DIR puts the logs elsewhere
    python bench/train_vs_cosine.py report    # results.json, RESULTS.md and the plots

The part on Tiny Shakespeare is left out where $PAPERCUTS_DATA does not name the folder that holds
text/tinyshakespeare.txt. `run` may be killed and called again: finished runs stay, the others
resume from their checkpoints. The learning rate of each part is the one that is best for cosine in
pilot runs on another text (the tests of the standard library) with another seed; nothing is tuned
on the runs that are reported.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch
from parts import (
    MARGIN,
    PARTS,
    PILOT_SEED,
    Part,
    best_lr,
    config_of,
    corpus_of,
    log_path,
    parts_at_hand,
    read_log,
)

from seesaw.train import train_runs


def work(logs: Path, part: Part, arm: str, seed: int, lr: float | None) -> None:
    """Do one run in this process, from where its log and checkpoint stand."""
    torch.set_num_threads(1)
    final = log_path(logs, part.name, arm, seed, lr)
    partial = final.with_suffix(".part")
    written = partial.read_bytes() if partial.exists() else b""
    whole = written[: written.rfind(b"\n") + 1]
    partial.write_bytes(whole)
    records = train_runs(
        [config_of(part, arm, seed, best_lr(logs, part) if lr is None else lr)],
        corpus_of(part, arm),
        checkpoint=final.with_suffix(".ckpt"),
        checkpoint_every=500,
        done=whole.count(b"\n"),
    )
    with partial.open("a", buffering=1) as stream:
        for record in records:
            stream.write(json.dumps(record) + "\n")
    partial.replace(final)
    final.with_suffix(".ckpt").unlink(missing_ok=True)


def run(logs: Path, parts: list[Part]) -> None:
    """Do all runs, two at a time, one thread each."""
    logs.mkdir(parents=True, exist_ok=True)
    print(f"margin: {MARGIN} nats a byte, mean and 95 % interval", flush=True)
    lock = threading.Lock()

    def one(part: Part, arm: str, seed: int, lr: float | None) -> None:
        path = log_path(logs, part.name, arm, seed, lr)
        if path.exists():
            return
        start = time.monotonic()
        words = [part.name, arm, str(seed), *([] if lr is None else [repr(lr)])]
        command = [sys.executable, __file__, "work", *words, "--logs", str(logs)]
        subprocess.run(command, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
        end = read_log(path)[-1]
        with lock:
            print(
                f"{time.strftime('%H:%M:%S')} {path.stem}: {end['steps']} steps, validation loss"
                f" {end['validation_loss']:.4f}, {time.monotonic() - start:.0f} s",
                flush=True,
            )

    for part in parts:
        pilots = [("pilot", PILOT_SEED, lr) for lr in part.pilot_lrs]
        for jobs in (pilots, sorted(part.jobs(), key=lambda job: (job[0] == "fixed", job[1]))):
            with ThreadPoolExecutor(2) as pool:
                for future in [pool.submit(one, part, *job) for job in jobs]:
                    future.result()
        print(f"{part.name}: lr {best_lr(logs, part):g}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="?", default="all", choices=("all", "run", "work", "report"))
    parser.add_argument("words", nargs="*", help="parts to run (default: all)")
    parser.add_argument("--logs", type=Path, default=Path(__file__).parent / "logs")
    arguments = parser.parse_args()
    if arguments.what == "work":
        part, arm, seed, *lr = arguments.words
        work(arguments.logs, PARTS[part], arm, int(seed), float(lr[0]) if lr else None)
        return
    if arguments.what in ("all", "run"):
        run(arguments.logs, [PARTS[name] for name in arguments.words or parts_at_hand()])
    if arguments.what in ("all", "report"):
        from report import write_report  # brings matplotlib, which the workers can do without

        write_report(arguments.logs)


if __name__ == "__main__":
    main()
