"""Turn the finished logs of the training bench into results.json, RESULTS.md and the plots."""

from __future__ import annotations

import json
import platform
import sys
import time
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from parts import MARGIN, PARTS, PILOT_SEED, SEQ_LEN, Part, best_lr, log_path, plan_of, read_log

from papercuts.hardware import describe
from seesaw.compare import compare_runs, paired_interval
from seesaw.model import ByteModel, ModelShape
from seesaw.noise import NormLog, estimate_noise

mpl.use("svg")
from matplotlib import pyplot as plt

HERE = Path(__file__).parent
BINS = 64
COMMAND = "python bench/train_vs_cosine.py"
LABELS = {"base": "cosine", "seesaw": "Seesaw", "fixed": "fixed learning rate"}
TITLES = {
    "headline": "Standard library, batch under the noise scale",
    "shakespeare": "Tiny Shakespeare, batch under the noise scale",
    "past": "Standard library, batch past the noise scale",
}
BEGIN, END = "<!-- train_vs_cosine: begin -->", "<!-- train_vs_cosine: end -->"


def summarize(logs: Path, part: Part) -> dict[str, Any]:
    """Gather everything that is reported of one part."""
    lr = best_lr(logs, part)
    runs = {
        (arm, seed): read_log(log_path(logs, part.name, arm, seed, None))
        for arm in part.arms
        for seed in range(part.seeds)
    }
    ends = [next(r for r in log if r.get("event") == "end") for log in runs.values()]
    summary: dict[str, Any] = {
        "text": part.text,
        "tokens": part.tokens,
        "seq_len": SEQ_LEN,
        "batch": part.batch,
        "end_batch": plan_of(part, lr, part.tokens).end_batch,
        "lr": lr,
        "pilots": {
            f"{rate:g}": read_log(log_path(logs, part.name, "pilot", PILOT_SEED, rate))[-1][
                "validation_loss"
            ]
            for rate in part.pilot_lrs
        },
        "comparison": compare_runs(ends),
        "noise": noise_along(part, lr, [runs["base", seed] for seed in range(part.seeds)]),
        "runs": [],
    }
    if "fixed" in part.arms:
        fixed, base = (
            np.array([e["validation_loss"] for e in ends if e["run"] == arm])
            for arm in ("fixed", "base")
        )
        low, high = paired_interval((fixed - base).tolist())
        summary["fixed"] = {
            "loss": fixed.mean(),
            "difference": (fixed - base).mean(),
            "difference_low": low,
            "difference_high": high,
        }
    for (arm, seed), log in runs.items():
        # The steps are those that the trainer logged, not those that the plan meant to take.
        steps = [r for r in log if "loss" in r]
        end = next(r for r in log if r.get("event") == "end")
        if len(steps) != end["steps"]:
            raise SystemExit(f"{part.name} {arm} {seed}: the log misses steps")
        summary["runs"].append(
            {
                "run": arm,
                "seed": seed,
                "steps": len(steps),
                "tokens": steps[-1]["tokens"],
                "validation_loss": end["validation_loss"],
                **curve(steps, part.tokens),
            }
        )
    return summary


def curve(steps: list[dict[str, Any]], tokens: int) -> dict[str, list[float]]:
    """Average the training loss in equal stretches of tokens; give each one's last step too."""
    seen = np.array([r["tokens"] for r in steps])
    weight = np.array([r["batch"] for r in steps], dtype=float)
    loss = np.array([r["loss"] for r in steps])
    stretch = np.minimum((seen - 1) * BINS // tokens, BINS - 1)
    total = np.bincount(stretch, weight, BINS)
    # A large batch may step over a stretch: that one lies on the line between its neighbours.
    held = np.flatnonzero(total)
    mean = np.bincount(stretch, weight * loss, BINS)[held] / total[held]
    mean = np.interp(np.arange(BINS), held, mean)
    last = np.searchsorted(stretch, np.arange(BINS), side="right")
    return {"loss": np.round(mean, 4).tolist(), "step": last.tolist()}


def noise_along(
    part: Part, lr: float, base_logs: list[list[dict[str, Any]]]
) -> list[dict[str, Any]]:
    """Estimate the noise scale at each measuring point from all seeds' base runs together."""
    plan = plan_of(part, lr, part.tokens)
    rows = [r for log in base_logs for r in log if "grad_norm_sq" in r]
    made = []
    for step in sorted({r["step"] for r in rows}):
        here = [r for r in rows if r["step"] == step]
        estimate = estimate_noise(
            NormLog(
                np.array([r["batch"] for r in here], dtype=float),
                np.array([r["grad_norm_sq"] for r in here]),
            )
        )
        tokens = min(step * part.batch * SEQ_LEN, plan.tokens)
        made.append(
            {
                "tokens": tokens,
                "noise_scale": estimate.noise_scale,
                "noise_scale_low": estimate.noise_scale_low,
                "noise_scale_high": estimate.noise_scale_high,
                "seesaw_batch": plan.phase_at_token(tokens - 1).batch,
            }
        )
    return made


def plot(name: str, summary: dict[str, Any]) -> None:
    """Draw the training loss against tokens and against optimizer steps."""
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True, layout="constrained")
    tokens = (np.arange(BINS) + 0.5) * summary["tokens"] / BINS / 1e6
    lowest = 0.0
    for arm, label in LABELS.items():
        runs = [run for run in summary["runs"] if run["run"] == arm]
        if not runs:
            continue
        loss = np.mean([run["loss"] for run in runs], axis=0)
        low = np.min([run["loss"] for run in runs], axis=0)
        high = np.max([run["loss"] for run in runs], axis=0)
        steps = np.mean([run["step"] for run in runs], axis=0)
        lowest = float(loss[BINS // 10 :].max()) if arm == "base" else lowest
        for axis, x in ((axes[0], tokens), (axes[1], steps)):
            (line,) = axis.plot(x, loss, label=label, linewidth=1.3)
            axis.fill_between(x, low, high, color=line.get_color(), alpha=0.2, linewidth=0)
    axes[0].set(xlabel="tokens (bytes), millions", ylabel="training loss (nats a byte)")
    axes[1].set(xlabel="optimizer steps")
    axes[0].set_ylim(top=lowest * 1.05)
    axes[1].legend(frameon=False)
    figure.suptitle(TITLES[name], fontsize=10)
    mpl.rcParams["svg.hashsalt"] = "papercuts"
    figure.savefig(HERE / f"train_{name}.svg", metadata={"Date": None})
    plt.close(figure)


def verdict(summary: dict[str, Any]) -> str:
    """Say whether the interval lies inside the margin, outside it, or across its edge."""
    compared = summary["comparison"]
    low, high = compared["difference_low"], compared["difference_high"]
    if low >= -MARGIN and high <= MARGIN:
        return "equal within the margin"
    if low > MARGIN:
        return "Seesaw worse by more than the margin"
    if high < -MARGIN:
        return "Seesaw better by more than the margin"
    if low > 0:
        return "Seesaw worse; the interval crosses the margin"
    return "undecided; the interval crosses the margin"


def machine() -> str:
    """Name the kind of machine."""
    cpu, *gpus = describe()
    amx = ", AMX" if "amx_bf16" in cpu["features"] else ""
    names = ", ".join(gpu["name"] for gpu in gpus) or "no GPU"
    return f"{cpu['cores']} cores, {platform.machine()} ({cpu['simd']}{amx}), {names}"


def parameters() -> int:
    """Count the model's parameters."""
    return ByteModel(ModelShape(), SEQ_LEN).count_parameters()


def section(parts: dict[str, dict[str, Any]], date: str) -> str:
    """Write this bench's section of RESULTS.md."""
    lines = [
        BEGIN,
        "## Cosine against Seesaw on real text",
        "",
        f"Margin, stated before the run: {MARGIN} nats a byte for the mean paired difference of the"
        " final validation loss (Seesaw minus cosine) and its 95 % interval.",
        "",
        f"A byte-level transformer of {parameters() / 1e6:.2f} M parameters, sequences of {SEQ_LEN}"
        " bytes, each seen once; AdamW, cut 1.1, warmup 10 %, cosine to 10 %. Steps are counted"
        " from the"
        " trainers' logs.",
        f"{date}; {machine()}; `{COMMAND}`.",
        "",
        "| | tokens | seeds | lr | batch | cosine loss | Seesaw loss | difference (95 %) | steps |"
        " saved | |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, summary in parts.items():
        c = summary["comparison"]
        lines.append(
            f"| {TITLES[name]} | {summary['tokens'] / 1e6:.2f} M | {c['seeds']} |"
            f" {summary['lr']:g} | {summary['batch']} to {summary['end_batch']} |"
            f" {c['base_loss']:.4f} ± {c['base_loss_sd']:.4f} | {c['seesaw_loss']:.4f} |"
            f" {c['difference']:+.4f} ({c['difference_low']:+.4f} to {c['difference_high']:+.4f}) |"
            f" {c['base_steps']} to {c['seesaw_steps']} | {100 * c['steps_saved']:.1f} % |"
            f" {verdict(summary)} |"
        )
    for name, summary in parts.items():
        lines += ["", f"### {TITLES[name]}", "", f"![loss](train_{name}.svg)", ""]
        if "fixed" in summary:
            f = summary["fixed"]
            lines += [
                f"With the learning rate fixed after warmup and the batch too: {f['loss']:.4f},"
                f" {f['difference']:+.4f} ({f['difference_low']:+.4f} to"
                f" {f['difference_high']:+.4f}) against cosine.",
                "",
            ]
        pilots = ", ".join(f"{rate}: {loss:.4f}" for rate, loss in summary["pilots"].items())
        lines += [
            f"Pilots on another text, cosine, validation loss by learning rate: {pilots}.",
            "",
            "Gradient noise scale along the cosine runs, and Seesaw's batch there, in sequences:",
            "",
            "| tokens | noise scale (95 %) | Seesaw's batch |",
            "|---|---|---|",
        ]
        for row in summary["noise"]:
            scale, low, high = (
                "open" if row[key] is None else f"{row[key]:.0f}"
                for key in ("noise_scale", "noise_scale_low", "noise_scale_high")
            )
            lines.append(
                f"| {row['tokens'] / 1e6:.2f} M | {scale} ({low} to {high}) |"
                f" {row['seesaw_batch']} |"
            )
    return "\n".join([*lines, END]) + "\n"


def write_report(logs: Path) -> None:
    """Write the report of the parts whose runs are all finished."""
    parts = {}
    for name, part in PARTS.items():
        paths = [log_path(logs, name, *job) for job in part.jobs()]
        missing = [path.stem for path in paths if not path.exists()]
        if missing:
            print(f"{name}: left out, {len(missing)} runs to do", file=sys.stderr)
        else:
            parts[name] = summarize(logs, part)
            plot(name, parts[name])
    date = time.strftime("%Y-%m-%d", time.gmtime(max(p.stat().st_mtime for p in logs.iterdir())))
    text = section(parts, date)
    print(text)

    results = HERE / "results.json"
    kept = json.loads(results.read_text()) if results.exists() else {}
    kept["train_vs_cosine"] = {
        "date": date,
        "machine": machine(),
        "python": platform.python_version(),
        "command": COMMAND,
        "margin": MARGIN,
        "parts": parts,
    }
    results.write_text(json.dumps(kept, indent=1) + "\n")

    page = HERE / "RESULTS.md"
    whole = page.read_text() if page.exists() else "# What was measured\n\n"
    before, _, rest = whole.partition(BEGIN)
    page.write_text(before + text + rest.partition(END)[2].lstrip("\n"))
