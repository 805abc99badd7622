/* Predictions of a fitted model in plain JavaScript: an interpreter of portable graphs, which are
   what the Python library says its models compute. No part of the page is touched here. One row x
   is an array of numbers, NaN if missing. Arrays are C-contiguous, with rows as the last axis. */
"use strict";
const tensorlace = (() => {
  /* ---- constants ---- */
  function bytes(text) {
    const plain = atob(text), out = new Uint8Array(plain.length);
    for (let i = 0; i < out.length; i++) out[i] = plain.charCodeAt(i);
    return out.buffer;
  }

  function unpack(node) {
    if (node.type === "list") return Float64Array.from(node.data);
    if (node.type === "f8") return new Float64Array(bytes(node.data));
    if (node.type === "f4") return Float64Array.from(new Float32Array(bytes(node.data)));
    // columns of whole numbers of 1 to 3 bytes, each column times a power of two
    const raw = new Uint8Array(bytes(node.data)), [P, k] = node.shape, data = new Float64Array(P * k);
    let at = 0;
    for (let j = 0; j < k; j++) {
      const width = node.widths[j], unit = 2 ** node.exponents[j], shift = 32 - 8 * width;
      for (let i = 0; i < P; i++) {
        let word = 0;
        for (let b = 0; b < width; b++) word |= raw[at++] << (8 * b);
        data[i * k + j] = ((word << shift) >> shift) * unit;
      }
    }
    return data;
  }

  /* ---- how arrays of different shapes go together ---- */
  const size = (shape) => shape.reduce((a, b) => a * b, 1);

  /** Steps from entry to entry of an array along the axes of a larger shape. */
  function strides(shape, out) {
    const steps = new Array(out.length).fill(0);
    for (let k = shape.length - 1, step = 1; k >= 0; step *= shape[k--])
      steps[out.length - shape.length + k] = shape[k] === 1 ? 0 : step;
    return steps;
  }

  /** Runs of entries at equal steps: where each begins in each array, how long, and the steps. */
  function runs(out, ...shapes) {
    const all = shapes.map((shape) => strides(shape, out)), axes = [];
    out.forEach((length, k) => {
      if (length === 1) return;
      const steps = all.map((s) => s[k]), last = axes[axes.length - 1];
      if (last && steps.every((step, j) => last.steps[j] === step * length)) {
        last.length *= length;
        last.steps = steps;
      } else axes.push({ length, steps });
    });
    const inner = axes.pop() || { length: 1, steps: shapes.map(() => 0) };
    const count = axes.reduce((n, axis) => n * axis.length, 1);
    const starts = shapes.map((_, j) => {
      let begin = [0];
      for (const { length, steps } of axes)
        begin = begin.flatMap((b) => Array.from({ length }, (_, i) => b + i * steps[j]));
      return Int32Array.from(begin);
    });
    return { count, length: size(out) === 0 ? 0 : inner.length, steps: inner.steps, starts };
  }

  /* ---- operations: from places of arrays and attributes to a function that fills the result ---- */
  const unary = (f) => ({ out, takes: [a] }) => () => {
    for (let i = 0; i < out.length; i++) out[i] = f(a.data[i]);
  };

  const binary = (f) => ({ out, shape, takes: [a, b] }) => {
    const { count, length, steps: [p, q], starts: [s, t] } = runs(shape, a.shape, b.shape);
    const x = a.data, y = b.data;
    return () => {
      for (let c = 0, o = 0; c < count; c++)
        for (let k = 0, i = s[c], j = t[c]; k < length; k++, i += p, j += q) out[o++] = f(x[i], y[j]);
    };
  };

  // the most frequent ones have a loop of their own, which runs several times faster
  const add = ({ out, shape, takes: [a, b] }) => {
    const { count, length, steps: [p, q], starts: [s, t] } = runs(shape, a.shape, b.shape);
    const x = a.data, y = b.data;
    return () => {
      for (let c = 0, o = 0; c < count; c++)
        for (let k = 0, i = s[c], j = t[c]; k < length; k++, i += p, j += q) out[o++] = x[i] + y[j];
    };
  };
  const sub = ({ out, shape, takes: [a, b] }) => {
    const { count, length, steps: [p, q], starts: [s, t] } = runs(shape, a.shape, b.shape);
    const x = a.data, y = b.data;
    return () => {
      for (let c = 0, o = 0; c < count; c++)
        for (let k = 0, i = s[c], j = t[c]; k < length; k++, i += p, j += q) out[o++] = x[i] - y[j];
    };
  };
  const mul = ({ out, shape, takes: [a, b] }) => {
    const { count, length, steps: [p, q], starts: [s, t] } = runs(shape, a.shape, b.shape);
    const x = a.data, y = b.data;
    return () => {
      for (let c = 0, o = 0; c < count; c++)
        for (let k = 0, i = s[c], j = t[c]; k < length; k++, i += p, j += q) out[o++] = x[i] * y[j];
    };
  };

  const where = ({ out, shape, takes: [mask, a, b] }) => {
    const { count, length, steps, starts } = runs(shape, mask.shape, a.shape, b.shape);
    const [p, q, r] = steps, [s, t, u] = starts;
    return () => {
      for (let c = 0, o = 0; c < count; c++)
        for (let k = 0, h = s[c], i = t[c], j = u[c]; k < length; k++, h += p, i += q, j += r)
          out[o++] = mask.data[h] ? a.data[i] : b.data[j];
    };
  };

  function matmul({ out, shape, takes: [a, b] }) {
    const n = shape[shape.length - 1], k = b.shape[0], m = out.length / (n || 1);
    const A = a.data, B = b.data;
    if (n === 1)
      return () => {
        for (let i = 0, at = 0; i < m; i++, at += k) {
          let s0 = 0, s1 = 0, s2 = 0, s3 = 0, p = 0;
          for (; p + 3 < k; p += 4) {
            s0 += A[at + p] * B[p];
            s1 += A[at + p + 1] * B[p + 1];
            s2 += A[at + p + 2] * B[p + 2];
            s3 += A[at + p + 3] * B[p + 3];
          }
          for (; p < k; p++) s0 += A[at + p] * B[p];
          out[i] = s0 + s1 + (s2 + s3);
        }
      };
    return () => {
      out.fill(0);
      for (let i = 0, at = 0; i < m; i++) {
        let p = 0;
        for (; p + 3 < k; p += 4, at += 4) {
          const w = A[at], x = A[at + 1], y = A[at + 2], z = A[at + 3];
          for (let j = 0, o = i * n, q = p * n; j < n; j++, o++, q++)
            out[o] += w * B[q] + x * B[q + n] + (y * B[q + 2 * n] + z * B[q + 3 * n]);
        }
        for (; p < k; p++, at++) for (let j = 0, o = i * n, q = p * n; j < n; j++) out[o++] += A[at] * B[q++];
      }
    };
  }

  /** Fold an axis: one number after the other, from ``start``. */
  const reduced = (start, f) => ({ out, takes: [a], attributes: { axis } }) => {
    const outer = size(a.shape.slice(0, axis)), length = a.shape[axis];
    const inner = size(a.shape.slice(axis + 1)), x = a.data;
    return () => {
      out.fill(start);
      for (let c = 0, at = 0; c < outer; c++)
        for (let k = 0; k < length; k++)
          for (let j = 0, o = c * inner; j < inner; j++, o++) out[o] = f(out[o], x[at++]);
    };
  };

  /** Number of the last of ascending knots up to t; 0 below all, and for NaN. */
  const locate = ({ out, takes: [knots, t] }) => () => {
    for (let i = 0; i < out.length; i++) {
      let low = 0, high = knots.data.length;
      while (high - low > 1) {
        const middle = (low + high) >> 1;
        if (knots.data[middle] <= t.data[i]) low = middle; else high = middle;
      }
      out[i] = low;
    }
  };

  const copied = (place) => ({ out, shape, takes: [a], attributes }) => () => {
    for (let i = 0; i < out.length; i++) out[i] = a.data[place(i, shape, a.shape, attributes)];
  };

  /** Nearest whole number, of two the even one. */
  function round(x) {
    const up = Math.round(x);
    return up - x === 0.5 && up % 2 !== 0 ? up - 1 : up;
  }

  const operations = {
    add, sub, mul, where, matmul, locate,
    div: binary((x, y) => x / y),
    fmod: binary((x, y) => x % y),
    pow: binary((x, y) => x ** y),
    min: binary(Math.min),
    max: binary(Math.max),
    less: binary((x, y) => +(x < y)),
    less_equal: binary((x, y) => +(x <= y)),
    equal: binary((x, y) => +(x === y)),
    and: binary((x, y) => x * y),
    or: binary((x, y) => +(x + y > 0)),
    expand: binary((x) => x),
    neg: unary((x) => -x),
    abs: unary(Math.abs),
    sqrt: unary(Math.sqrt),
    exp: unary(Math.exp),
    log: unary(Math.log),
    cos: unary(Math.cos),
    sin: unary(Math.sin),
    round: unary(round),
    isnan: unary((x) => +Number.isNaN(x)),
    isinf: unary((x) => +(Math.abs(x) === Infinity)),
    not: unary((x) => 1 - x),
    sum: reduced(0, (x, y) => x + y),
    largest: reduced(-Infinity, Math.max),
    transpose: ({ out, shape: [n, m], takes: [a] }) => () => {
      for (let i = 0, o = 0; i < n; i++) for (let j = 0, at = i; j < m; j++, at += n) out[o++] = a.data[at];
    },
    column: copied((i, shape, [, width], { place }) => i * width + place),
    take: copied((i, [, ...rest], _, { which }) => {
      const width = size(rest);
      return which[Math.floor(i / width)] * width + (i % width);
    }),
    lookup: ({ out, takes: [table, place] }) => () => {
      for (let i = 0; i < out.length; i++) out[i] = table.data[place.data[i]];
    },
    label: ({ out, takes: [text], attributes: { keys, values, other } }) => {
      const known = new Map(keys.map((key, k) => [key, values[k]]));
      return () => {
        for (let i = 0; i < out.length; i++) out[i] = known.has(text.data[i]) ? known.get(text.data[i]) : other;
      };
    },
    concat: ({ out, takes }) => () => {
      let at = 0;
      for (const part of takes) { out.set(part.data, at); at += part.data.length; }
    },
  };

  /** Operations whose result is the same memory, or a part of it. */
  const views = {
    number: (a) => a.data,
    reshape: (a) => a.data,
    slice: (a, { start, stop }) => {
      const width = size(a.shape.slice(1));
      return a.data.subarray(start * width, stop * width);
    },
  };

  /* ---- graphs ---- */
  /** Memory and steps for n rows; what depends on no row is computed at once. */
  function plan(graph, n) {
    const arrays = [], steps = [], inputs = [];
    graph.nodes.forEach(([name, shapes, takes, attributes], place) => {
      const fixed = graph.fixed[place];
      if (fixed) return arrays.push(fixed);
      const shape = shapes.map((length) => (length < 0 ? n : length));
      const from = (takes || []).map((k) => arrays[k]);
      if (views[name]) return arrays.push({ shape, data: views[name](from[0], attributes || {}) });
      const text = name === "input" && attributes.kind === "text";
      const array = { shape, data: text ? new Array(size(shape)) : new Float64Array(size(shape)) };
      arrays.push(array);
      if (name === "input") inputs.push({ name: attributes.name, data: array.data });
      else steps.push(operations[name]({ out: array.data, shape, takes: from, attributes: attributes || {} }));
    });
    return { arrays, steps, inputs };
  }

  /** Unpack constants, and compute what follows from them alone, once. */
  function prepare(graph) {
    const constants = graph.arrays.map(unpack), moving = [];
    delete graph.arrays;
    graph.plans = new Map();
    graph.fixed = [];
    graph.nodes.forEach(([name, shape, takes, attributes], place) => {
      moving[place] = name === "input" || (takes || []).some((k) => moving[k]);
      if (moving[place]) return;
      if (name === "constant") graph.fixed[place] = { shape, data: constants[attributes] };
      else {
        const from = takes.map((k) => graph.fixed[k]);
        const array = { shape, data: views[name] ? views[name](from[0], attributes) : new Float64Array(size(shape)) };
        if (!views[name]) operations[name]({ out: array.data, shape, takes: from, attributes: attributes || {} })();
        graph.fixed[place] = array;
      }
    });
    return graph;
  }

  /** Outputs of n rows, each {shape, data}; overwritten by the next call with as many rows. */
  function evaluate(graph, inputs, n) {
    if (!graph.plans.has(n)) graph.plans.set(n, plan(graph, n));
    const { arrays, steps, inputs: wanted } = graph.plans.get(n);
    for (const { name, data } of wanted)
      for (let i = 0; i < data.length; i++) data[i] = inputs[name][i];
    for (const step of steps) step();
    const found = {};
    for (const [name, place] of Object.entries(graph.outputs)) found[name] = arrays[place];
    return found;
  }

  /** Make a model ready for predictions. */
  function load(model) {
    prepare(model.graph);
    return model;
  }

  /* ---- the predictive distribution ---- */
  /** Probability below x: a series of positive terms near 0, a continued fraction in the tails. */
  function ndtr(x) {
    return Number.isNaN(x) ? NaN : area(x, Math.exp(-0.5 * x * x) / Math.sqrt(2 * Math.PI));
  }

  /** The same, given the density at x. */
  function area(x, density) {
    const z = Math.abs(x);
    if (z < 3) {
      let term = z, sum = z;
      for (let k = 3; term > 1e-18 * sum; k += 2) { term *= (z * z) / k; sum += term; }
      return 0.5 + Math.sign(x) * density * sum;
    }
    if (density === 0) return x < 0 ? 0 : 1;
    let fraction = z;
    for (let k = 80; k > 0; k--) fraction = z + k / fraction;
    return x < 0 ? density / fraction : 1 - density / fraction;
  }

  /** Smallest value with probability q below it: Newton within a bracket, else halves. */
  function quantile(parts, q) {
    const upper = q > 0.5, goal = upper ? 1 - q : q, side = upper ? -1 : 1;
    let low = Math.min(...parts.map((p) => p.mean - 9 * p.std));
    let high = Math.max(...parts.map((p) => p.mean + 9 * p.std));
    let x = parts.reduce((sum, p) => sum + p.weight * p.mean, 0);
    for (let step = 0; step < 200; step++) {
      let tail = -goal, slope = 0; // probability of the smaller tail, which keeps its digits
      for (const p of parts) {
        const z = (x - p.mean) / p.std, density = Math.exp(-0.5 * z * z) / Math.sqrt(2 * Math.PI);
        tail += p.weight * area(side * z, density);
        slope += (p.weight * density) / p.std;
      }
      const gap = side * tail;
      if (gap < 0) low = x; else high = x;
      const next = x - gap / slope;
      const better = next > low && next < high ? next : low + (high - low) / 2;
      if (Math.abs(better - x) <= 2e-16 * Math.max(Math.abs(x), high - low)) return better;
      x = better;
    }
    return x;
  }

  const EDGE = 5; // as in tensorlace.predictive.conformal: beyond, one standard deviation each
  const clip = (x, low, high) => Math.min(Math.max(x, low), high);

  /** Three digits of a positive number, without an exponent. */
  function short(x) {
    if (x < 1e-3) return "less than 0.001";
    return x < 999.5 ? String(+x.toPrecision(3)) : Math.round(x).toLocaleString("en-US");
  }

  /** How far a row is from what training rows support, and why; see tensorlace.machines.novelty. */
  function novelty(names, joint, amounts, beyond) {
    let worst = 0;
    for (let d = 1; d < amounts.length; d++) if (amounts[d] > amounts[worst]) worst = d;
    const single = amounts[worst], measure = Math.max(single, joint), name = names[worst];
    let reason = "";
    if (single > 1)
      reason = beyond[worst] > 0
        ? `${name} is ${short(0.5 * beyond[worst])} ranges beyond its training range`
        : `${name} has a value that no training row had`;
    else if (joint > 1)
      reason = `combination of values, of which the model is ${short(joint)} times as unsure as of any training row`;
    return { measure, reason };
  }

  /** Scales of the target by name: from what the parts say to what is observed. */
  const scales = {
    clip: (u, { low, high }) => clip(u, low === null ? -Infinity : low, high === null ? Infinity : high),
    logit: (u, { low, high, rate, shift }) => low + (high - low) / (1 + Math.exp(-(rate * u + shift))),
    log: (u, { low, high, rate }) => Math.min(low + Math.exp(rate * u), high === null ? Infinity : high),
  };

  /** Standard deviation of a mixture of normals. */
  function spread(parts) {
    const mean = parts.reduce((sum, p) => sum + p.weight * p.mean, 0);
    return Math.sqrt(parts.reduce((sum, p) => sum + p.weight * ((p.mean - mean) ** 2 + p.std ** 2), 0));
  }

  /** What the page shows of a row: mean, standard deviations, quantiles, how unlike training it is. */
  function predict(model, x, quantiles = true) {
    const found = evaluate(model.graph, { X: x }, 1), std = found.std.data[0];
    const out = {
      mean: found.mean.data[0], std, epistemic: found.epistemic_std.data[0],
      aleatoric: found.aleatoric_std.data[0],
      novelty: novelty(model.names, found.joint.data[0], found.amounts.data, found.beyond.data),
    };
    if (!quantiles) return out;
    const parts = Array.from(found.weights.data, (weight, k) => ({
      weight, mean: found.means.data[k], std: Math.hypot(found.epistemic.data[k], found.aleatoric.data[k]),
    }));
    const seen = model.scale ? (u) => scales[model.scale.name](u, model.scale) : (u) => u;
    out.quantiles = model.levels.map((q, k) => {
      if (!model.residuals) return seen(quantile(parts, q));
      const z = model.residuals[k];
      if (z === null) return NaN;
      const inner = clip(z, -EDGE, EDGE), beyond = z - inner;
      const far = beyond === 0 ? 0 : beyond * (model.scale ? spread(parts) : std);
      return seen(quantile(parts, ndtr(inner)) + far);
    });
    return out;
  }

  return { prepare, evaluate, load, predict, ndtr, quantile };
})();
if (typeof module !== "undefined") module.exports = tensorlace;
