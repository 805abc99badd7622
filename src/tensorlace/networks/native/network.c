/* The response of a whole network to rows of a raw table: warp, cosines, factors and products of
 * CHUNK_ROWS rows at a time, so that nothing but the answer leaves first-level cache.
 * A chunk is always full: rows that are not there repeat the first one. So no bit of a row depends
 * on the rows beside it. */
#define ROW_LANES ((long)(VECTOR_BYTES / sizeof(double)))
#define ALIGNED __attribute__((aligned(64)))
#define WIDE_ROWS (REGISTERS / 6)
#define AT(p) (*(vec_double *)(p))

/* One knot of a distribution function; to the next one it is a straight line. */
typedef struct {
    double at, next, slope, height;
} knot;

/* How a column becomes features. */
typedef struct {
    long functions;
    const double *core;      /* (R + additive, functions) */
    const double *phi;       /* (functions, n): features made elsewhere, or NULL, and then: */
    const double *amplitude; /* (functions) of the cosines */
    double low, scale;       /* t = x scale - low */
    double line, curve;      /* u = line t + curve q(t), q the distribution function: */
    const int *cells;        /* last knot before each cell, -1 where a search has to decide */
    const knot *knots;
    long n_cells, n_knots;
} column;

/* The first knot whose next one lies beyond t. */
OPAQUE long searched(const column *c, double t) {
    long low = 0, high = c->n_knots - 1;
    while (low < high) {
        const long middle = (low + high) / 2;
        if (c->knots[middle].next > t) high = middle;
        else low = middle + 1;
    }
    return low;
}

/* u (CHUNK_ROWS) within [0, 1] from m rows of a column of the table; 1 if one is not finite. */
OPAQUE long warp(const column *c, const double *x, long step, long m, double *u) {
    double t[CHUNK_ROWS];
    long odd = 0;
    for (long k = 0; k < CHUNK_ROWS; k++) {
        const double value = x[k < m ? k * step : 0];
        const long finite = value - value == 0;
        odd |= !finite;
        t[k] = finite ? value * c->scale - c->low : 0;
        u[k] = c->line * t[k];
    }
    if (c->curve != 0) {
        const double first = c->knots[0].at, last = c->knots[c->n_knots - 1].at;
        int which[CHUNK_ROWS];
        for (long k = 0; k < CHUNK_ROWS; k++) {
            t[k] = t[k] < first ? first : t[k] > last ? last : t[k];
            which[k] = c->cells[(int)(t[k] * (double)c->n_cells)];
        }
        for (long k = 0; k < CHUNK_ROWS; k++) {
            const long i = which[k] < 0 ? searched(c, t[k])
                                        : which[k] + (t[k] >= c->knots[which[k]].next);
            const double q = (t[k] - c->knots[i].at) * c->knots[i].slope + c->knots[i].height;
            u[k] += c->curve * (q < 1 ? q : 1);
        }
    }
    for (long k = 0; k < CHUNK_ROWS; k++) u[k] = u[k] < 0 ? 0 : u[k] > 1 ? 1 : u[k];
    return odd;
}

/* phi (I, CHUNK_ROWS) = a_k cos(k pi u), as `rotate` does it, but turning in registers. */
OPAQUE void waves(const double *u, const double *a, long I, double *phi) {
    for (long k = 0; k < CHUNK_ROWS; k += 2 * ROW_LANES) {
        vec_double c1[2], s1[2], c[2], s[2];
#pragma GCC unroll 2
        for (int v = 0; v < 2; v++) {
            const vec_double x = PI * (*(const vec_double *)(u + k + v * ROW_LANES) - 0.5);
            const vec_double q = x * x;
            vec_double sine = {0}, cosine = {0};
#pragma GCC unroll 12
            for (int j = TERMS - 1; j >= 0; j--) {
                sine = sine * q + SINE[j];
                cosine = cosine * q + COSINE[j];
            }
            c1[v] = -(sine * x);
            s1[v] = cosine;
            s[v] = (vec_double){0};
            c[v] = s[v] + 1;
        }
        for (long i = 0; i < I; i++)
#pragma GCC unroll 2
            for (int v = 0; v < 2; v++) {
                AT(phi + i * CHUNK_ROWS + k + v * ROW_LANES) = a[i] * c[v];
                const vec_double turned = c[v] * c1[v] - s[v] * s1[v];
                s[v] = s[v] * c1[v] + c[v] * s1[v];
                c[v] = turned;
            }
    }
}

/* sum (rows, WIDE_ROWS vectors) = V phi, for the rows of the table from k on. */
INLINE void tile(const double *V, const double *phi, long I, long k, vec_double *sum,
                 const int rows) {
#pragma GCC unroll 16
    for (int j = 0; j < WIDE_ROWS * rows; j++) sum[j] = (vec_double){0};
    for (long i = 0; i < I; i++) {
        const double *p = phi + i * CHUNK_ROWS + k;
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
            for (int v = 0; v < WIDE_ROWS; v++)
                sum[WIDE_ROWS * r + v] += *(const vec_double *)(p + v * ROW_LANES) * V[r * I + i];
    }
}

/* P (rows, CHUNK_ROWS) *= V phi, and the same for E unless it is NULL. */
INLINE void multiply_in(const double *V, const double *phi, long I, double *P, double *E,
                        const int rows) {
    for (long k = 0; k < CHUNK_ROWS; k += WIDE_ROWS * ROW_LANES) {
        vec_double sum[4 * WIDE_ROWS];
        tile(V, phi, I, k, sum, rows);
#pragma GCC unroll 16
        for (int j = 0; j < WIDE_ROWS * rows; j++) {
            const long to = (j / WIDE_ROWS) * CHUNK_ROWS + k + (j % WIDE_ROWS) * ROW_LANES;
            AT(P + to) *= sum[j];
            if (E) AT(E + to) *= sum[j];
        }
    }
}

OPAQUE void multiply_all(const double *V, const double *phi, long R, long I, double *P, double *E) {
    long r = 0;
    for (; r + 4 <= R; r += 4)
        multiply_in(V + r * I, phi, I, P + r * CHUNK_ROWS, E ? E + r * CHUNK_ROWS : NULL, 4);
    for (; r < R; r++)
        multiply_in(V + r * I, phi, I, P + r * CHUNK_ROWS, E ? E + r * CHUNK_ROWS : NULL, 1);
}

/* sum (CHUNK_ROWS) += z_r z_p times B psi, for some pairs r, p = q of rows of E. */
INLINE void pairs_in(const double *B, const double *psi, long S, const double *E, const long *r,
                     const long *q, double *sum, const int pairs) {
    for (long k = 0; k < CHUNK_ROWS; k += WIDE_ROWS * ROW_LANES) {
        vec_double t[4 * WIDE_ROWS];
        tile(B, psi, S, k, t, pairs);
#pragma GCC unroll 4
        for (int v = 0; v < WIDE_ROWS; v++) {
            const long to = k + v * ROW_LANES;
            vec_double total = AT(sum + to);
#pragma GCC unroll 4
            for (int j = 0; j < pairs; j++) {
                const double *a = E + r[j] * CHUNK_ROWS + to, *b = E + q[j] * CHUNK_ROWS + to;
                total += *(const vec_double *)a * *(const vec_double *)b * t[WIDE_ROWS * j + v];
            }
            AT(sum + to) = total;
        }
    }
}

/* sum (CHUNK_ROWS) of z_r z_p B_rp psi over pairs r <= p, from E (R, CHUNK_ROWS) and
 * psi (S, CHUNK_ROWS); NaN where it is below `bound` times the square of the sum of |z|. */
OPAQUE void quadratic(const double *B, const double *psi, long R, long S, const double *E,
                      double bound, double *sum) {
    long r[4], q[4], next_r = 0, next_q = 0, held = 0;
    const long total = R * (R + 1) / 2;
    double size[CHUNK_ROWS] = {0};
    for (long k = 0; k < CHUNK_ROWS; k++) sum[k] = 0;
    for (long pair = 0; pair < total; pair++) {
        r[held] = next_r;
        q[held++] = next_q;
        if (++next_q == R) next_q = ++next_r;
        if (held == 4) {
            pairs_in(B + (pair - 3) * S, psi, S, E, r, q, sum, 4);
            held = 0;
        }
    }
    for (long j = 0; j < held; j++)
        pairs_in(B + (total - held + j) * S, psi, S, E, r + j, q + j, sum, 1);
    for (long j = 0; j < R; j++)
        for (long k = 0; k < CHUNK_ROWS; k++) size[k] += __builtin_fabs(E[j * CHUNK_ROWS + k]);
    for (long k = 0; k < CHUNK_ROWS; k++)
        if (!(sum[k] >= bound * (size[k] * size[k]))) sum[k] = __builtin_nan("");
}

/* What is wanted beside the response: for the column left_out, if not NULL, the product
 * Z (R, n) of all other factors, or the variance (n) from B (R(R+1)/2, S), see `quadratic`;
 * ones (S) are the amplitudes of psi. */
typedef struct {
    long left_out;
    double *Z, *variance;
    const double *B, *ones;
    long S;
    double bound;
} extra;

/* f (n) of n rows X (n, D), and what is wanted beside it.
 * With an additive part cores have one row more, whose values are added to f. `work` holds
 * (most functions + 2 R + S) CHUNK_ROWS numbers, and 7 so that they can begin with a line of cache.
 * Returns 1 if a value that is used is not finite. */
long network(const column *columns, const double *X, long D, long n, long R, long additive,
             double *work, double *f, const extra *x) {
    double *P = work + (-(uintptr_t)work % 64) / sizeof(double), *E = P + R * CHUNK_ROWS;
    double *psi = E + R * CHUNK_ROWS, *phi = psi + x->S * CHUNK_ROWS;
    const int surrounded = x->Z || x->variance;
    long odd = 0;
    for (long start = 0; start < n; start += CHUNK_ROWS) {
        const long m = n - start < CHUNK_ROWS ? n - start : CHUNK_ROWS;
        ALIGNED double u[CHUNK_ROWS], sum[CHUNK_ROWS] = {0};
        for (long k = 0; k < R * CHUNK_ROWS; k++) P[k] = E[k] = 1;
        for (long d = 0; d < D; d++) {
            const column *c = columns + d;
            const long I = c->functions;
            if (c->phi)
                for (long i = 0; i < I; i++)
                    for (long k = 0; k < CHUNK_ROWS; k++)
                        phi[i * CHUNK_ROWS + k] = c->phi[i * n + start + (k < m ? k : 0)];
            else {
                odd |= warp(c, X + start * D + d, D, m, u);
                waves(u, c->amplitude, I, phi);
                if (x->variance && d == x->left_out) waves(u, x->ones, x->S, psi);
            }
            multiply_all(c->core, phi, R, I, P, surrounded && d != x->left_out ? E : NULL);
            if (additive)
                for (long i = 0; i < I; i++)
                    for (long k = 0; k < CHUNK_ROWS; k++)
                        sum[k] += c->core[R * I + i] * phi[i * CHUNK_ROWS + k];
        }
        for (long r = 0; r < R; r++)
            for (long k = 0; k < CHUNK_ROWS; k++) sum[k] += P[r * CHUNK_ROWS + k];
        memcpy(f + start, sum, sizeof(double) * m);
        if (x->Z)
            for (long r = 0; r < R; r++)
                memcpy(x->Z + r * n + start, E + r * CHUNK_ROWS, sizeof(double) * m);
        if (x->variance) {
            quadratic(x->B, psi, R, x->S, E, x->bound, sum);
            memcpy(x->variance + start, sum, sizeof(double) * m);
        }
    }
    return odd;
}
