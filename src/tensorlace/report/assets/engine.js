/* Predictions of a fitted model in plain JavaScript: what the Python library computes, number for
   number. No part of the page is touched here. One row x is an array of numbers, NaN if missing. */
"use strict";
const tensorlace = (() => {
  /* ---- arrays ---- */
  function bytes(text) {
    const plain = atob(text), out = new Uint8Array(plain.length);
    for (let i = 0; i < out.length; i++) out[i] = plain.charCodeAt(i);
    return out.buffer;
  }

  function unpack(node) {
    const shape = node.shape;
    if (node.type === "f8") return { data: new Float64Array(bytes(node.data)), shape };
    if (node.type === "f4") return { data: Float64Array.from(new Float32Array(bytes(node.data))), shape };
    // columns of whole numbers of 1 to 3 bytes, each column times a power of two
    const raw = new Uint8Array(bytes(node.data)), [P, k] = shape, data = new Float64Array(P * k);
    let at = 0;
    for (let j = 0; j < k; j++) {
      const width = node.widths[j], unit = 2 ** node.exponents[j], shift = 32 - 8 * width;
      for (let i = 0; i < P; i++) {
        let word = 0;
        for (let b = 0; b < width; b++) word |= raw[at++] << (8 * b);
        data[i * k + j] = ((word << shift) >> shift) * unit;
      }
    }
    return { data, shape };
  }

  /** Replace the numbers of arrays by the arrays, once, before the first prediction. */
  function load(model) {
    const arrays = model.arrays.map(unpack);
    const get = (k) => arrays[k];
    const flat = (k) => arrays[k].data;
    const basis = (b) => {
      if (b.amplitude !== undefined) b.amplitude = flat(b.amplitude);
      if (b.typical !== undefined) b.typical = flat(b.typical);
      if (b.base) basis(b.base);
    };
    const posterior = (p) => {
      for (const key of ["W", "U"]) if (p[key] !== undefined) p[key] = get(p[key]);
      for (const key of ["scale", "c", "variance"]) if (p[key] !== undefined) p[key] = flat(p[key]);
      (p.parts || []).forEach(posterior);
    };
    const network = (m) => {
      for (const c of m.columns) {
        for (const key of ["knots", "heights", "values"])
          if (c.warp[key] !== undefined) c.warp[key] = flat(c.warp[key]);
        basis(c.basis);
        c.typical = flat(c.typical);
      }
      if (m.rotation) {
        m.rotation.mean = flat(m.rotation.mean);
        m.rotation.matrix = get(m.rotation.matrix);
      }
      m.cores = m.cores.map(get);
      if (m.posterior) posterior(m.posterior);
      if (m.unseen) m.unseen = m.unseen.map(flat);
    };
    model.members.forEach(network);
    model.noise.machines.forEach(network);
    delete model.arrays;
    return model;
  }

  /* ---- from a raw value to the variable of its basis ---- */
  const clip = (x, low, high) => Math.min(Math.max(x, low), high);

  /** x times 2^e, also where 2^e is no number. */
  function ldexp(x, e) {
    const half = Math.trunc(e / 2);
    return x * 2 ** half * 2 ** (e - half);
  }
  const framed = (w, x) => ldexp(x, -w.exponent) - ldexp(w.low, -w.exponent);

  function quantileAt(w, t) {
    const { knots, heights } = w, last = knots.length - 1;
    t = clip(t, knots[0], knots[last]);
    let low = 0, high = last + 1; // the last knot that is not above t
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (knots[middle] <= t) low = middle; else high = middle;
    }
    if (low === last) return Math.min(heights[last], 1);
    const slope = (heights[low + 1] - heights[low]) / (knots[low + 1] - knots[low]);
    return Math.min((t - knots[low]) * (Number.isFinite(slope) ? slope : 0) + heights[low], 1);
  }

  const warps = {
    identity: (w, x) => x,
    standardise: (w, x) => (framed(w, x) - w.offset) / w.spread,
    minmax: (w, x) => (w.width === 0 ? 0.5 : framed(w, x) / w.width),
    quantile: (w, x) => quantileAt(w, framed(w, x)),
    mixed: (w, x) => {
      if (w.width === 0) return 0.5;
      const t = framed(w, x);
      return 0.5 * (t / w.width) + 0.5 * quantileAt(w, t);
    },
    cyclic: (w, x) => {
      const rest = x % w.period;
      return (rest < 0 ? rest + w.period : rest) / w.period;
    },
    codes: (w, x) => {
      if (Number.isNaN(x)) return w.missing ? w.values.length : -1;
      return w.values.indexOf(x);
    },
  };

  function variable(c, x) {
    if (Number.isNaN(x) && c.warp.type !== "codes") return NaN;
    const u = warps[c.warp.type](c.warp, x);
    return c.interval ? u * (c.interval[1] - c.interval[0]) + c.interval[0] : u;
  }

  function inputs(m, x) {
    if (!m.rotation) return x;
    const { which, others, mean, matrix } = m.rotation, k = matrix.shape[1];
    const out = new Array(k).fill(0);
    which.forEach((d, row) => {
      const gap = x[d] - mean[row];
      for (let j = 0; j < k; j++) out[j] += gap * matrix.data[row * k + j];
    });
    return out.concat(others.map((d) => x[d]));
  }

  /* ---- bases ---- */
  const bases = {
    cosine: (b, u) => {
      const theta = Math.PI * clip(u, 0, 1);
      return Array.from(b.amplitude, (a, i) => a * Math.cos(i * theta));
    },
    sine: (b, u) => {
      const theta = (clip(u, -0.5, 1.5) + 0.5) * (Math.PI / 2);
      return Array.from(b.amplitude, (a, i) => a * Math.sin((i + 1) * theta));
    },
    fourier: (b, u) => {
      const theta = 2 * Math.PI * (u - Math.round(u));
      return Array.from({ length: b.n }, (_, i) => {
        if (i === 0) return 1;
        const k = Math.ceil(i / 2);
        return Math.SQRT2 * (i % 2 ? Math.cos(k * theta) : Math.sin(k * theta));
      });
    },
    chebyshev: (b, u) => {
      const size = Math.abs(u);
      if (size <= 1) {
        const theta = Math.atan2(Math.sqrt((1 - u) * (1 + u)), u);
        return Array.from({ length: b.n }, (_, k) => (k === 1 ? u : Math.cos(k * theta)));
      }
      const growth = Math.sqrt(size - 1) * Math.sqrt(size + 1) + size, sign = Math.sign(u);
      return Array.from({ length: b.n }, (_, k) => {
        if (k === 1) return u;
        return (k % 2 ? sign : 1) * 0.5 * (growth ** k + (1 / growth) ** k);
      });
    },
    legendre: (b, u) => {
      // increments at |u|: next to 1 the plain recurrence would build up roundings
      const out = [1], step = Math.abs(u) - 1, sign = u < 0 ? -1 : 1;
      let increment = step, value = 1;
      for (let k = 1; k < b.n; k++) {
        value += increment;
        increment = (increment * k) / (k + 1) + (step * value * (2 * k + 1)) / (k + 1);
        out.push(k === 1 ? u : k % 2 ? sign * value : value);
      }
      return out;
    },
    polynomial: (b, u) => Array.from({ length: b.n }, (_, k) => u ** k),
    unit_polynomial: (b, u) => {
      const large = Math.abs(u) > 1, t = large ? 1 / u : u;
      const powers = Array.from({ length: b.n }, (_, k) => t ** k);
      const norm = Math.sqrt(powers.reduce((sum, p) => sum + p * p, 0));
      const sign = large && b.n % 2 === 0 ? Math.sign(u) : 1;
      const unit = powers.map((p) => (sign * p) / norm);
      return large ? unit.reverse() : unit;
    },
    bspline: (b, u) => {
      const p = b.degree, cells = b.n - p, x = clip(u, 0, 1);
      const knot = (i) => clip((i - p) / cells, 0, 1);
      let cell = p; // the last cell that begins at or before x
      while (cell < b.n - 1 && knot(cell + 1) <= x) cell++;
      const out = new Array(b.n).fill(0);
      out[cell] = 1;
      for (let q = 1; q <= p; q++)
        for (let i = Math.max(cell - q, 0); i <= cell; i++) {
          const left = knot(i + q) - knot(i), right = knot(i + q + 1) - knot(i + 1);
          const next = i + 1 < b.n ? out[i + 1] : 0;
          out[i] = (left > 0 ? ((x - knot(i)) / left) * out[i] : 0)
            + (right > 0 ? ((knot(i + q + 1) - x) / right) * next : 0);
        }
      return out;
    },
    indicator: (b, u) => Array.from({ length: b.n }, (_, i) => +(u === i)),
    levels: (b, u) => Array.from({ length: b.n }, (_, i) => +(i === 0 || u === i - 1)),
    missing: (b, u) => {
      const gone = Number.isNaN(u);
      return [...(gone ? b.typical : phi(b.base, u)), +gone];
    },
    subset: (b, u) => {
      const all = phi(b.base, u);
      return b.which.map((k) => all[k]);
    },
  };
  const phi = (b, u) => bases[b.type](b, u);

  /** Whether a variable stands for something that no training row had. */
  function novel(b, u) {
    if (b.type === "missing") return false;
    if (b.type === "subset") return novel(b.base, u);
    if (b.type === "indicator" || b.type === "levels") return !(u >= 0);
    return Number.isNaN(u);
  }

  /** Variables, features and novelty of all columns of a network. */
  function features(m, x) {
    return inputs(m, x).map((value, d) => {
      const c = m.columns[d], u = variable(c, value), fresh = novel(c.basis, u);
      return { u, novel: fresh, phi: fresh ? c.typical : phi(c.basis, u) };
    });
  }

  /* ---- the network ---- */
  function factors(m, columns) {
    return columns.map((column, d) => {
      const V = m.cores[d], [R, I] = V.shape, F = new Float64Array(R);
      for (let r = 0; r < R; r++)
        for (let i = 0; i < I; i++) F[r] += V.data[r * I + i] * column.phi[i];
      return F;
    });
  }

  function response(m, columns, F) {
    let f = 0;
    for (let r = 0; r < F[0].length; r++) f += F.reduce((product, one) => product * one[r], 1);
    if (m.cores.length > columns.length) {
      const a = m.cores[columns.length].data;
      let i = 0;
      for (const column of columns) for (const p of column.phi) f += a[i++] * p;
    }
    return f;
  }

  /** Products of all factors but one, without a division: D arrays of R. */
  function environments(F) {
    const R = F[0].length, Z = F.map(() => new Float64Array(R).fill(1));
    for (let r = 0; r < R; r++) {
      let product = 1;
      for (let d = 0; d < F.length; d++) { Z[d][r] = product; product *= F[d][r]; }
      product = 1;
      for (let d = F.length - 1; d >= 0; d--) { Z[d][r] *= product; product *= F[d][r]; }
    }
    return Z;
  }

  function jacobian(m, columns, Z) {
    const g = [];
    for (const d of m.bayesian) {
      if (d === columns.length) for (const column of columns) g.push(...column.phi);
      else for (const z of Z[d]) for (const p of columns[d].phi) g.push(z * p);
    }
    return g;
  }

  const posteriors = {
    diagonal: (p, g) => g.reduce((sum, x, i) => sum + p.variance[i] * x * x, 0),
    root: (p, g) => {
      const t = transposed(p.W, g);
      return t.reduce((sum, x) => sum + x * x, 0);
    },
    low_rank: (p, g) => {
      const b = Float64Array.from(g, (x, i) => p.scale[i] * x), k = p.c.length;
      const inside = transposed(p.U, b);
      let variance = 0;
      for (let j = 0; j < k; j++) variance += p.c[j] * inside[j] * inside[j];
      for (let i = 0; i < b.length; i++) {
        let rest = b[i];
        for (let j = 0, at = i * k; j < k; j++) rest -= p.U.data[at + j] * inside[j];
        variance += rest * rest;
      }
      return variance;
    },
    blocks: (p, g) => {
      let start = 0, sum = 0;
      for (const part of p.parts) {
        sum += posteriors[part.type](part, g.slice(start, start + part.size));
        start += part.size;
      }
      return sum;
    },
  };

  /** Product of a transposed matrix and a vector. */
  function transposed(A, v) {
    const k = A.shape[1], out = new Float64Array(k);
    for (let i = 0; i < v.length; i++)
      for (let j = 0, at = i * k, x = v[i]; j < k; j++) out[j] += A.data[at + j] * x;
    return out;
  }

  /** Mean, epistemic and aleatoric standard deviation of one member, in units of y. */
  function moments(m, x) {
    const columns = features(m, x), F = factors(m, columns), Z = environments(F);
    let variance = posteriors[m.posterior.type](m.posterior, jacobian(m, columns, Z));
    columns.forEach((column, d) => {
      if (!column.novel) return;
      m.unseen[d].forEach((v, r) => { variance += v * (r < Z[d].length ? Z[d][r] ** 2 : 1); });
    });
    return {
      mean: m.location + m.scale * response(m, columns, F),
      epistemic: m.scale * Math.sqrt(variance),
      aleatoric: m.scale * m.noise,
    };
  }

  function logVariance(noise, x) {
    if (noise.strength === 0) return 0;
    let sum = 0;
    for (const m of noise.machines) {
      const columns = features(m, x);
      sum += m.location + m.scale * response(m, columns, factors(m, columns));
    }
    const h = sum / noise.machines.length;
    return clip(noise.strength * (h - noise.level), -noise.largest, noise.largest);
  }

  /** The predictive distribution of one row: normals with their weights. */
  function mixture(model, x) {
    const parts = model.members.map((m) => moments(m, x)), noise = model.noise;
    let logs = model.members.map((m, k) => {
      const std = Math.hypot(parts[k].epistemic, parts[k].aleatoric);
      return Math.log(m.weight) - model.sharpness * Math.log(std);
    });
    const top = Math.max(...logs), raw = logs.map((l) => Math.exp(l - top));
    const total = raw.reduce((a, b) => a + b, 0);
    const factor = noise.trivial
      ? 1 : noise.shrink * noise.factor * Math.exp(0.5 * logVariance(noise, x));
    const out = [];
    noise.shares.forEach((share, s) => parts.forEach((part, k) => {
      const epistemic = part.epistemic * (noise.trivial ? 1 : noise.shrink);
      const aleatoric = part.aleatoric * factor * noise.stds[s];
      out.push({
        weight: (share * raw[k]) / total, mean: part.mean, epistemic, aleatoric,
        std: Math.hypot(epistemic, aleatoric),
      });
    }));
    return out;
  }

  /* ---- normal distribution ---- */
  /** Probability below x: a series of positive terms near 0, a continued fraction in the tails. */
  function ndtr(x) {
    if (Number.isNaN(x)) return NaN;
    const z = Math.abs(x), density = Math.exp(-0.5 * z * z) / Math.sqrt(2 * Math.PI);
    if (z < 3) {
      let term = z, sum = z;
      for (let k = 3; term > 1e-18 * sum; k += 2) { term *= (z * z) / k; sum += term; }
      return 0.5 + Math.sign(x) * density * sum;
    }
    let fraction = z;
    for (let k = 80; k > 0; k--) fraction = z + k / fraction;
    return x < 0 ? density / fraction : 1 - density / fraction;
  }

  /** Smallest value with probability q below it: Newton within a bracket, else halves. */
  function quantile(parts, q) {
    const upper = q > 0.5, goal = upper ? 1 - q : q, side = upper ? -1 : 1;
    const tail = (x) => // probability of the smaller tail, which keeps its digits
      parts.reduce((sum, p) => sum + p.weight * ndtr((side * (x - p.mean)) / p.std), 0);
    const density = (x) => parts.reduce((sum, p) => {
      const z = (x - p.mean) / p.std;
      return sum + (p.weight * Math.exp(-0.5 * z * z)) / (p.std * Math.sqrt(2 * Math.PI));
    }, 0);
    let low = Math.min(...parts.map((p) => p.mean - 9 * p.std));
    let high = Math.max(...parts.map((p) => p.mean + 9 * p.std));
    let x = parts.reduce((sum, p) => sum + p.weight * p.mean, 0);
    for (let step = 0; step < 200; step++) {
      const gap = side * (tail(x) - goal);
      if (gap < 0) low = x; else high = x;
      const next = x - gap / density(x);
      const better = next > low && next < high ? next : low + (high - low) / 2;
      if (Math.abs(better - x) <= 2e-16 * Math.max(Math.abs(x), high - low)) return better;
      x = better;
    }
    return x;
  }

  const EDGE = 5; // as in tensorlace.residuals: beyond, one standard deviation each

  /** What the page shows of a row: mean, standard deviations, quantiles. */
  function predict(model, x, quantiles = true) {
    const parts = mixture(model, x);
    const mean = parts.reduce((sum, p) => sum + p.weight * p.mean, 0);
    const rms = (f) => Math.hypot(...parts.map((p) => Math.sqrt(p.weight) * f(p)));
    const epistemic = Math.hypot(rms((p) => p.mean - mean), rms((p) => p.epistemic));
    const aleatoric = rms((p) => p.aleatoric), std = Math.hypot(epistemic, aleatoric);
    const out = { mean, std, epistemic, aleatoric };
    if (quantiles)
      out.quantiles = model.levels.map((q, k) => {
        if (!model.residuals) return quantile(parts, q);
        const z = model.residuals[k];
        if (z === null) return NaN;
        const inner = clip(z, -EDGE, EDGE);
        return quantile(parts, ndtr(inner)) + (z - inner) * std;
      });
    return out;
  }

  /** Whether each column of the first network lies beyond what it saw in training. */
  function outside(model, x) {
    const m = model.members[0];
    return inputs(m, x).map((value, d) => {
      const c = m.columns[d], w = c.warp;
      if (novel(c.basis, variable(c, value))) return true;
      return w.type !== "cyclic" && w.type !== "codes" && (value < w.low || value > w.high);
    });
  }

  return { load, predict, outside, ndtr, quantile };
})();
if (typeof module !== "undefined") module.exports = tensorlace;
