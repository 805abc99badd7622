"""Write docs/benchmarks.md and its figures from the files in results/bench/, nothing else."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tensorlace_lab.measuring import bench_record as record
from tensorlace_lab.pages import bench_charts as charts

Record = dict[str, Any]
SIZE = "{N:,} × {D}, {I}, {R}"

HEAD = """# Benchmarks

Everything on this page is read from the files in `results/bench/`, each of which was written by the
command named below its table. `python -m benchmarks` measures, `python -m benchmarks report` writes
this page. Ratios are taken within one run. N is the number of rows, D of columns, I of basis
functions per column and R the rank.
"""


def main() -> None:
    print(f"wrote {write(record.RESULTS, record.ROOT / 'docs').name}")


def write(results: Path, docs: Path) -> Path:
    """Write the page for the results in one folder into another; the path of the page."""
    figures = docs / "benchmarks"
    figures.mkdir(parents=True, exist_ok=True)
    parts, missing = [HEAD], []
    names = [*SECTIONS, *sorted({p.stem for p in results.glob("*.json")} - set(SECTIONS))]
    for name in names:
        title, section = SECTIONS.get(name, (name.replace("_", " ").capitalize(), _plain))
        if not (path := results / f"{name}.json").exists():
            missing.append(name)
            continue
        found = json.loads(path.read_text())
        text = section(found, figures)
        if "remark" in found:
            text += f"\n\n{found['remark']}"
        parts.append(f"## {title}\n\n{text}\n\n{_footer(found)}\n")
    if missing:
        parts.append(f"Not measured yet: {', '.join(missing)}.\n")
    page = docs / "benchmarks.md"
    page.write_text("\n".join(parts))
    return page


def _footer(found: Record) -> str:
    cores = f", {found['cores']} cores" if "cores" in found else ""
    using = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    return (
        f"*`{found['command']}`, {found['date']}, {found['machine']}{cores}, Python "
        f"{found['python']}, {using}.*"
    )


def _table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _time(seconds: float) -> str:
    if seconds < 0.1:
        return f"{seconds * 1e3:.3g} ms"
    return f"{seconds:.3g} s" if seconds < 1000 else f"{seconds:,.0f} s"


def _times(ratio: float) -> str:
    return f"{ratio:.3g}×" if ratio < 100 else f"{ratio:.0f}×"


def _goal(met: bool, aim: str) -> str:
    return f"The aim was {aim}: {'reached' if met else '**not reached**'}."


def _gram(found: Record, _: Path) -> str:
    rows = [
        [
            f"{r['N']:,}, {r['I']}, {r['R']}",
            f"{r['gram_us_per_row']:.3g} µs",
            f"{r['syrk_us_per_row']:.3g} µs",
            _times(r["gram_ratio"]),
            _times(r["update_ratio"]),
            f"{r['share_of_dgemm']:.0%}",
            f"{r['compiled_us_per_row']:.3g} µs",
            f"{r['compiled_share_of_dgemm']:.0%}",
        ]
        for r in found["rows"]
    ]
    header = ["N, I, R", "structured, per row", "dense SYRK, per row", "Gram", "whole update"]
    header += ["share of DGEMM", "compiled, per row", "share of DGEMM"]
    large = [r["compiled_share_of_dgemm"] for r in found["rows"] if r["I"] >= 16 and r["R"] >= 20]
    return (
        "The Gram matrix of one core from products of basis functions, against forming the design "
        "matrix and multiplying; one thread. The share is of the rate at which NumPy multiplies "
        "two matrices of 2000 × 2000 in the same run; pair products, matrix product and expansion "
        "are timed, the operations of the matrix product counted.\n\n"
        + _table(header, rows)
        + "\n\n"
        + _goal(min(large) >= 0.5, "half of DGEMM's rate for I ≥ 16, R ≥ 20")
    )  # fmt: skip


SWEEP = {
    "tensorlace": "tensorlace",
    "tensorlace_compiled": "tensorlace, compiled",
    "tnkm": "tnkm",
    "dense_numpy": "dense NumPy",
}


def _sweep(found: Record, _: Path) -> str:
    rows = found["rows"]
    systems = [s for s in SWEEP if all(f"{s}_s" in r for r in rows)]
    seconds = [[SIZE.format(**r), *(_over(r, s) for s in systems)] for r in rows]
    text = (
        "One ALS sweep in double precision from the same start to the same objective; in brackets "
        "the time relative to tensorlace's.\n\n"
        + _table(["N × D, I, R", *(SWEEP[s] for s in systems)], seconds)
    )
    slower = [SIZE.format(**r) for r in rows if min(r["ratio_tnkm"], r["ratio_dense"]) < 1.0]
    if slower:
        text += f"\n\nAnother system is faster at {'; '.join(slower)}."
    if all("tensorlace_mb" in r for r in rows):
        memory = [[SIZE.format(**r), *(f"{r[f'{s}_mb']:,.0f} MB" for s in systems)] for r in rows]
        text += "\n\nMemory that a sweep adds to a process that holds the data:\n\n"
        text += _table(["N × D, I, R", *(SWEEP[s] for s in systems)], memory)
    return text


def _over(row: Record, system: str) -> str:
    seconds = _time(row[f"{system}_s"])
    if system == "tensorlace":
        return seconds
    return f"{seconds} ({_times(row[f'{system}_s'] / row['tensorlace_s'])})"


PREDICT = {
    "mean_s": "mean",
    "mean_and_std_s": "mean and standard deviation, closed form",
    "joint_mean_s": "mean, all cores uncertain (GGN, the default curvature)",
    "joint_mean_and_std_s": "mean and standard deviation, all cores uncertain",
    "samples_s": "{draws} posterior samples, features shared",
    "draws_s": "{draws} draws of new targets (`sample_y`)",
    "networks_s": "{draws} sampled networks, one after the other",
}


def _predict(found: Record, _: Path) -> str:
    every = found["rows"]
    first, keys = every[0], [k for k in PREDICT if all(k in r for r in every)]
    engines = [r.get("engine", "numpy") for r in every]
    rows = [[PREDICT[k].format(**first), *(_time(r[k]) for r in every)] for k in keys]
    text = (
        f"Predictions at {first['N']:,} rows, D = {first['D']}, I = {first['I']}, R = "
        f"{first['R']}, posterior of the last core.\n\n"
        + _table(["what", *(f"engine {e}" for e in engines)], rows)
    )  # fmt: skip
    for engine, r in zip(engines, every, strict=True):
        up = {k: r[k] / r["mean_and_std_s"] for k in keys if "mean" not in k}
        down = r["mean_and_std_s"] / r["mean_s"]
        times = "; ".join(
            f"{PREDICT[k].format(**r)} {_times(v)}{'' if v >= 10 else ' (**less than 10×**)'}"
            for k, v in up.items()
        )
        text += (
            f"\n\nEngine {engine}: relative to mean and standard deviation, {times}. The aim was "
            f"10×. The mean alone is {_times(down)} as fast as both. {_goal(down >= 5, '5×')}"
        )
        if "joint_mean_s" in keys:
            joint = r["joint_mean_and_std_s"] / r["joint_mean_s"]
            text += f" With all cores uncertain it is {_times(joint)} as fast as both."
    return text + (
        "\n\nFor the last core the two aims exclude each other. A sampled network costs what the "
        "mean costs, so 30 cost at most 30 means, and a standard deviation ten times as fast at "
        "most 3. Through the product closure it takes R(R+1)/2·(2I-1) multiplications, 2,040 per "
        "row here, where the mean takes D·I·R, 1,024. Samples that share everything but the last "
        "core need another 30·I·R, 3,840, so in one engine no closed form is ten times as fast as "
        "these; they are drawn by NumPy in both columns, so the compiled ratio flatters."
    )  # fmt: skip


def _first_fit(found: Record, _: Path) -> str:
    keys = {"process_s": "whole process", "import_s": "imports", "fit_s": "first fit"}
    rows = []
    for r in found["rows"]:
        show = _times if r["system"].startswith("ratio") else _time
        rows.append([f"{r['I']}, {r['R']}", r["system"], *(show(r[k]) for k in keys)])
    ours = found["rows"][0]
    ratios = [r["process_s"] for r in found["rows"] if r["system"] == "ratio"]
    return (
        f"A fresh process that imports the library and fits {ours['N']:,} × {ours['D']} rows in "
        f"{ours['sweeps']} sweeps. tnkm compiles first; tensorlace also computes the posterior. "
        "The core is the same fit by `tensorlace.fitting.fit_machines`, below the estimator.\n\n"
        + _table(["I, R", "system", *keys.values()], rows)
        + f"\n\n{_goal(min(ratios) >= 10, '10× for the whole process')} Importing scikit-learn, "
        f"which loads scipy.stats and pandas, alone takes {_time(ours['sklearn_s'])}."
    )  # fmt: skip


def _scaling(found: Record, figures: Path) -> str:
    charts.scaling(found["rows"], figures / "scaling.svg")
    aims = {"N": "1.00 ± 0.05", "I": "at most 1.2", "R": "at most 2.1", "D": "at most 1.1"}
    tops = {"N": 1.05, "I": 1.2, "R": 2.1, "D": 1.1}
    rows = []
    for r in (r for r in found["rows"] if r["axis"].startswith("exponent")):
        axis = r["axis"][-1]
        met = r["exponent"] <= tops[axis] and (axis != "N" or r["exponent"] >= 0.95)
        aim = f"{aims[axis]}: {'reached' if met else '**not reached**'}"
        fitted, last = f"{r['exponent']:.2f}", f"{r['last_step']:.2f}"
        rows.append([f"{axis}, {r['where']}", fitted, last, str(r["paper"]), aim])
    text = (
        "Seconds per ALS sweep, rows streamed from disk against N and in memory otherwise. The "
        "paper's count of operations is O(N D I² R²). Streamed, every core asks for the features "
        "of all columns again, a share of the work that is quadratic in D.\n\n"
        "![Time of a sweep against N, I, R and D](benchmarks/scaling.svg)\n\n"
        + _table(["against", "fitted exponent", "last step", "paper", "aim"], rows)
    )
    streamed = [r for r in found["rows"] if (r["axis"], r["where"]) == ("N", "streamed")]
    if len(streamed) > 1:
        memory = [[f"{r['N']:,}", _time(r["sweep_s"]), f"{r['peak_mb']:,.0f} MB"] for r in streamed]
        text += "\n\n" + _table(["N, streamed", "sweep", "peak of the process"], memory)
    peak = {r["N"]: r["peak_mb"] for r in streamed}
    if {1_000_000, 10_000_000} <= set(peak):
        more = peak[10_000_000] / peak[1_000_000] - 1.0
        text += f"\n\nTen times the rows take {more:+.1%} memory. {_goal(more <= 0.05, '+5 %')}"
    return text


def _peers(found: Record, figures: Path) -> str:
    charts.peers(found["rows"], figures / "peers.svg")
    header = ["rows", "system", "fit", "mean", "mean and std", "RMSE", "NLL", "CRPS"]
    rows = []
    for r in found["rows"]:
        cells = [f"{r['N']:,}", r["system"]]
        if "reason" in r:
            rows.append([*cells, r["reason"], *[""] * 5])
            continue
        times = [_time(r[k]) for k in ("fit_s", "mean_s", "mean_and_std_s")]
        rows.append([*cells, *times, *(f"{r[k]:.4f}" for k in ("rmse", "nll", "crps"))])
    beaten: list[str] = []
    for N in sorted({r["N"] for r in found["rows"]}):
        here = [r for r in found["rows"] if r["N"] == N and "nll" in r]
        own = [r["nll"] for r in here if r["system"].startswith("tensorlace")]
        better = [r["system"] for r in here if own and r["nll"] < min(own)]
        if better:
            beaten.append(f"{N:,} rows ({', '.join(better)})")
    verdict = f"A peer has the lower NLL at {'; '.join(beaten)}." if beaten else (
        "No peer has a lower NLL at any size."
    )  # fmt: skip
    one = "as one model of rank 8 with 8 basis functions"
    searched = any("searched" in r["system"] for r in found["rows"])
    ours = f"as it comes with a search of 10 seconds, and {one}" if searched else one
    return (
        "A smooth function of eight columns with noise of standard deviation 0.3; 2,000 test rows. "
        f"tensorlace {ours}; exact Gaussian processes up to 2,000 rows, GPJax with 200 inducing "
        "rows beyond; the others as they come. LightGBM's standard deviation is read off its 5 % "
        "and 95 % quantiles. A cell may take 120 seconds.\n\n"
        "![Fit time and NLL against rows](benchmarks/peers.svg)\n\n"
        + _table(header, rows) + "\n\n" + verdict
    )  # fmt: skip


def _airline(found: Record, _: Path) -> str:
    (r,) = found["rows"]
    rows = [
        ["fit", _time(r["fit_s"])],
        [f"per sweep, of {r['sweeps']}", _time(r["s_per_sweep"])],
        ["peak memory of the process", f"{r['peak_mb']:,.0f} MB"],
        ["objective, first and last sweep", f"{r['objective'][0]:.6g}, {r['objective'][-1]:.6g}"],
    ]
    goal = _goal(r["fit_s"] < 900 and r["peak_mb"] < 2000, "15 minutes and 2 GB")
    return (
        f"A synthetic Parquet file of {r['N']:,} × {r['D']} rows, I = {r['I']}, R = {r['R']}, read "
        f"again in every pass; engine {r['engine']}. The airline data that the size is taken from "
        "have 5,929,413.\n\n"
        + _table(["", ""], rows)
        + (f"\n\n{goal}" if r["N"] == 5_929_413 else "")
    )


def _passes(found: Record, _: Path) -> str:
    rows = []
    for r in found["rows"]:
        name = f"{r['solver'].replace('_', '-')}, {'grown' if r['grown'] else 'all rows'}"
        cells = [SIZE.format(**r), f"**{name}**" if r.get("auto") else name]
        for level in ("1e-2", "1e-3"):
            seconds, passes = r[f"seconds_{level}"], r[f"passes_{level}"]
            cells += ["", ""] if seconds is None else [_time(seconds), f"{passes:,.0f}"]
        rows.append([*cells, f"{r['final']:.2g}"])
    header = ["N × D, I, R", "solver", "to 1 %", "passes", "to 0.1 %", "passes", "ends above"]
    text = (
        "Until the objective is within 1 % and 0.1 % of the best that any solver found there; "
        "precisions are held. *Grown* fits begin on a part of the rows. What `auto` stands for "
        "is bold.\n\n" + _table(header, rows)
    )
    verdicts = []
    for size in dict.fromkeys(SIZE.format(**r) for r in found["rows"]):
        here = [r for r in found["rows"] if SIZE.format(**r) == size and r["seconds_1e-2"]]
        own = next((r for r in here if r.get("auto")), None)
        if own is not None:
            least = min(r["seconds_1e-2"] for r in here)
            verdicts.append(f"{_times(own['seconds_1e-2'] / least)} at {size}")
    if verdicts:
        text += f"\n\n`auto` takes {'; '.join(verdicts)} the time of the quickest to 1 %."
    return text


def _plain(found: Record, _: Path) -> str:
    header = list(dict.fromkeys(k for r in found["rows"] for k in r))
    return _table(header, [[str(r.get(k, "")) for k in header] for r in found["rows"]])


SECTIONS: dict[str, tuple[str, Callable[[Record, Path], str]]] = {
    "sweep": ("A sweep, beside other code", _sweep),
    "first_fit": ("The first fit of a fresh process", _first_fit),
    "scaling": ("Growth with N, I, R and D", _scaling),
    "predict": ("Predictions", _predict),
    "peers": ("Beside other regressors", _peers),
    "airline": ("Six million rows on disk", _airline),
    "gram": ("The structured Gram matrix", _gram),
    "passes": ("Solvers", _passes),
}
