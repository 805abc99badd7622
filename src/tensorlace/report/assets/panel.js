/* The what-if panel: controls, the answer for their values, and a curve along one column. */
"use strict";
(() => {
  const content = JSON.parse(document.getElementById("content").textContent);
  const model = tensorlace.load(content.model), columns = content.columns;
  const x = new Array(columns.length).fill(NaN), remembered = new Array(columns.length).fill(0);
  const inputs = [];
  const find = (id) => document.getElementById(id);
  const STEPS = 200, POINTS = 61, DAY = 864e5;

  function make(tag, attributes = {}, ...children) {
    const svg = ["svg", "path", "text", "line", "circle"].includes(tag);
    const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.append(...children);
    return node;
  }

  function format(v) {
    if (!Number.isFinite(v)) return "–";
    const size = Math.abs(v);
    if (size >= 1e4 && size < 1e9) return Math.round(v).toLocaleString("en");
    return String(+v.toPrecision(4));
  }
  const toText = (c, days) => new Date(c.origin + days * DAY).toISOString().slice(0, 16);
  const toDays = (c, text) => (Date.parse(text + "Z") - c.origin) / DAY;

  /** A value in words. */
  function word(d, v) {
    const c = columns[d];
    if (Number.isNaN(v)) return "missing";
    if (c.type === "date") return toText(c, v).slice(0, 10);
    if (c.type !== "select") return format(v);
    const option = c.options.find((o) => o[1] === v);
    return option ? option[0] : "never seen";
  }

  /* ---- controls ---- */
  function control(c, d) {
    const id = `column-${d}`, box = make("div", { class: "control" });
    box.append(make("label", { for: id }, c.name));
    const parts = {};
    if (c.missing) {
      parts.gap = make("input", { type: "checkbox", id: `${id}-missing` });
      box.append(make("label", { class: "gap" }, parts.gap, " missing"));
      parts.gap.setAttribute("aria-label", `${c.name} is missing`);
      parts.gap.addEventListener("change", () => set(d, parts.gap.checked ? NaN : remembered[d]));
    }
    if (c.type === "select") {
      parts.main = make("select", { id, class: "full" });
      for (const [text, value] of c.options) parts.main.append(make("option", { value }, text));
      if (c.other) parts.main.append(make("option", { value: "other" }, "another one, never seen"));
      const unseen = c.options.some((o) => o[1] === -1) ? -1e300 : -1;
      parts.main.addEventListener("change", () => set(d, parts.main.value === "other" ? unseen : +parts.main.value));
    } else {
      const stops = c.whole ? c.high - c.low : STEPS;
      const place = (v) => Math.round(((v - c.low) / (c.high - c.low || 1)) * stops);
      parts.slider = make("input", { type: "range", min: 0, max: Math.max(stops, 1), id });
      const at = () => c.low + ((c.high - c.low) * parts.slider.value) / (stops || 1);
      parts.slider.addEventListener("input", () => set(d, +at().toPrecision(12), parts.slider));
      parts.place = place;
      const date = c.type === "date";
      parts.main = make("input", { type: date ? "datetime-local" : "number", step: "any", class: "box" });
      parts.main.setAttribute("aria-label", `${c.name}, exact value`);
      parts.main.addEventListener("input", () => {
        const v = date ? toDays(c, parts.main.value) : parts.main.valueAsNumber;
        if (Number.isFinite(v)) set(d, v, parts.main);
      });
      box.append(parts.slider);
    }
    box.append(parts.main);
    inputs.push(parts);
    return box;
  }

  /** Bring a control to a value; the one that is being moved is left alone. */
  function show(d, source) {
    const c = columns[d], parts = inputs[d], gone = Number.isNaN(x[d]);
    if (parts.gap) parts.gap.checked = gone;
    for (const key of ["main", "slider"]) if (parts[key]) parts[key].disabled = gone;
    if (gone) return;
    if (c.type === "select") {
      parts.main.value = c.options.some((o) => o[1] === x[d]) ? String(x[d]) : "other";
      return;
    }
    if (parts.slider !== source) parts.slider.value = parts.place(x[d]);
    parts.slider.setAttribute("aria-valuetext", word(d, x[d]));
    if (parts.main !== source) parts.main.value = c.type === "date" ? toText(c, x[d]) : String(x[d]);
  }

  function set(d, value, source) {
    x[d] = value;
    if (!Number.isNaN(value)) remembered[d] = value;
    observed = null;
    show(d, source);
    refresh(d);
  }

  /* ---- how far the values are from training rows ---- */
  const FULL = 3; // measure at the end of the gauge
  function support({ measure, reason }) {
    const unlike = measure > 1, gauge = make("div", { class: "gauge", "aria-hidden": "true" });
    const bar = make("i"), mark = make("b");
    bar.style.width = `${(100 * Math.min(measure, FULL)) / FULL}%`;
    mark.style.left = `${100 / FULL}%`;
    gauge.append(bar, mark);
    const words = unlike ? [make("strong", {}, "Unlike the training rows: "), `${reason}.`] : ["Like the training rows."];
    return make("div", { class: unlike ? "support flag" : "support soft" }, make("p", {}, ...words), gauge,
      make("p", { class: "scale" }, `novelty ${format(measure)}; unlike above 1`));
  }

  /* ---- the answer ---- */
  let observed = null;
  function answer() {
    const p = tensorlace.predict(model, x), q = p.quantiles, box = find("answer");
    const share = (100 * p.epistemic ** 2) / p.std ** 2;
    const line = (name, text) => make("div", {}, make("dt", {}, name), make("dd", {}, text));
    const range = (a, b) => (Number.isFinite(a) && Number.isFinite(b) ? `${format(a)} to ${format(b)}` : "too few held-out rows to promise");
    const split = make("div", { class: "split", "aria-hidden": "true" });
    const e = make("i", { class: "e" }), a = make("i", { class: "a" });
    e.style.width = `${share}%`;
    a.style.width = `${100 - share}%`;
    split.append(e, a);
    const nodes = [
      make("p", { class: "big" }, format(p.mean), make("span", { class: "soft" }, ` ± ${format(p.std)}`)),
      make("dl", {}, line("50 % between", range(q[1], q[3])), line("95 % between", range(q[0], q[4])),
        ...(observed === null ? [] : [line("observed", format(observed))])),
      split,
      make("p", { class: "soft" }, `${share.toFixed(0)} % of the variance is the model's own ignorance (± ${format(p.epistemic)}), ${(100 - share).toFixed(0)} % is noise (± ${format(p.aleatoric)}).`),
    ];
    nodes.push(support(p.novelty));
    box.replaceChildren(...nodes);
    window.whatIf = { x: x.slice(), ...p };
  }

  /* ---- the curve ---- */
  let job = 0, drawn = null;
  function places(d) {
    const c = columns[d];
    if (c.type === "select") return c.options.map((o) => o[1]);
    const low = Math.min(c.low, Number.isNaN(x[d]) ? c.low : x[d]);
    const high = Math.max(c.high, Number.isNaN(x[d]) ? c.high : x[d]);
    return Array.from({ length: POINTS }, (_, k) => low + ((high - low) * k) / (POINTS - 1));
  }

  /** Compute the curve a few points at a time, so that controls stay quick. */
  function curve() {
    const d = +find("along").value, grid = places(d), found = [], mine = ++job;
    const work = () => {
      if (mine !== job) return;
      const until = performance.now() + 14;
      while (found.length < grid.length && performance.now() < until) {
        const row = x.slice();
        row[d] = grid[found.length];
        found.push(tensorlace.predict(model, row));
      }
      if (found.length < grid.length) setTimeout(work, 0);
      else { drawn = { d, grid, found }; draw(); }
    };
    setTimeout(work, 30);
  }

  const W = 460, H = 280, L = 56, R = 12, T = 12, B = 42;
  function ticks(low, high) {
    const raw = (high - low) / 5 || 1, unit = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((m) => m * unit).find((s) => s >= raw * 0.999), out = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) out.push(+(k * step).toPrecision(12));
    return out;
  }

  function draw() {
    const { d, grid, found } = drawn, c = columns[d], select = c.type === "select";
    const all = found.flatMap((p) => [p.quantiles[0], p.quantiles[4], p.mean]).filter(Number.isFinite);
    if (observed !== null) all.push(observed);
    let low = Math.min(...all), high = Math.max(...all);
    const pad = (high - low) * 0.05 || 1;
    low -= pad; high += pad;
    const first = select ? -0.5 : grid[0], last = select ? grid.length - 0.5 : grid[grid.length - 1];
    const px = (v) => L + ((v - first) / (last - first || 1)) * (W - L - R);
    const py = (v) => H - B - ((v - low) / (high - low)) * (H - T - B);
    const at = (k) => px(select ? k : grid[k]);
    const svg = make("svg", { class: "plot", viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `Prediction along ${c.name}` });
    const path = (name, dd) => svg.append(make("path", { class: name, d: dd }));
    const text = (xx, yy, anchor, words, name = "") => svg.append(make("text", { x: xx, y: yy, "text-anchor": anchor, class: name }, words));
    for (const t of ticks(low, high)) { path("grid", `M${L} ${py(t)}H${W - R}`); text(L - 6, py(t) + 4, "end", format(t)); }
    if (select) {
      const step = Math.ceil(grid.length / 7);
      c.options.forEach((o, k) => { if (k % step === 0) text(at(k), H - B + 17, "middle", o[0].length > 11 ? o[0].slice(0, 10) + "…" : o[0]); });
    } else {
      const marks = c.type === "date" ? [grid[6], grid[30], grid[54]] : ticks(first, last);
      for (const t of marks) { path("grid", `M${px(t)} ${T}V${H - B}`); text(px(t), H - B + 17, "middle", word(d, t)); }
    }
    text((L + W - R) / 2, H - 5, "middle", c.name, "name");
    const band = (i, j, name) => {
      if (found.some((p) => !Number.isFinite(p.quantiles[i] + p.quantiles[j]))) return;
      if (select) {
        const half = Math.min(16, (0.3 * (W - L - R)) / grid.length);
        path(name, found.map((p, k) => `M${at(k) - half} ${py(p.quantiles[i])}V${py(p.quantiles[j])}H${at(k) + half}V${py(p.quantiles[i])}Z`).join(""));
      } else {
        const there = found.map((p, k) => `${at(k)} ${py(p.quantiles[j])}`);
        const back = found.map((p, k) => `${at(k)} ${py(p.quantiles[i])}`).reverse();
        path(name, `M${there.concat(back).join("L")}Z`);
      }
    };
    band(0, 4, "area");
    band(1, 3, "area strong");
    if (select) found.forEach((p, k) => path("line s0", `M${at(k) - 9} ${py(p.mean)}h18`));
    else path("line s0", `M${found.map((p, k) => `${at(k)} ${py(p.mean)}`).join("L")}`);
    const here = select ? grid.indexOf(x[d]) : x[d];
    if (!(Number.isNaN(here) || (select && here < 0))) {
      path("ref line", `M${px(here)} ${T}V${H - B}`);
      svg.append(make("circle", { cx: px(here), cy: py(window.whatIf.mean), r: 5, fill: "var(--s0)" }));
      if (observed !== null) svg.append(make("circle", { cx: px(here), cy: py(observed), r: 4.5, fill: "none", stroke: "var(--s1)", "stroke-width": 2.5 }));
    }
    find("curve").replaceChildren(svg);
    Object.assign(find("curve").dataset, {
      grid: JSON.stringify(grid), points: JSON.stringify(found.map((p) => p.mean)), row: JSON.stringify(x),
    });
  }

  function refresh(changed) {
    answer();
    const d = +find("along").value, inside = drawn && drawn.d === d && changed === d;
    if (inside && (columns[d].type === "select" || (x[d] >= drawn.grid[0] && x[d] <= drawn.grid[drawn.grid.length - 1]))) draw();
    else curve();
  }

  function begin(k) {
    content.starts[k].x.forEach((v, d) => {
      x[d] = v === null ? NaN : v;
      remembered[d] = v === null ? (columns[d].type === "select" ? columns[d].options[0][1] : (columns[d].low + columns[d].high) / 2) : v;
      show(d);
    });
    observed = content.starts[k].y === undefined ? null : content.starts[k].y;
    refresh(-1);
  }

  columns.forEach((c, d) => {
    find("columns").append(control(c, d));
    find("along").append(make("option", { value: d }, c.name));
  });
  content.starts.forEach((s, k) => find("start").append(make("option", { value: k }, s.name)));
  find("along").value = String(content.along || 0);
  find("along").addEventListener("change", curve);
  find("start").addEventListener("change", () => begin(+find("start").value));
  find("controls").addEventListener("submit", (event) => event.preventDefault());
  begin(0);
})();
