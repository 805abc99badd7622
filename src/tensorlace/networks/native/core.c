/* The least-squares problem of one core, summed over a block of rows.
 *
 * A tile of pair products z_r z_p is made in first-level cache and multiplied with psi while the
 * sums stay in registers, so nothing of size rows x pairs is ever written. Included once for double
 * and once for float rows; sums over rows are double in both.
 */
#ifndef REAL

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#define REGISTERS 24
#else
#define VECTOR_BYTES 32
#define REGISTERS 12
#endif
#define CHUNK_ROWS 64
#define PI 3.14159265358979323846
#define TERMS 12
/* Taylor coefficients of sin(x) / x and cos(x) in x^2: enough to the last digit up to pi / 2. */
static const double SINE[TERMS] = {
    1.0 / 1.0, -1.0 / 6.0, 1.0 / 120.0, -1.0 / 5040.0, 1.0 / 362880.0, -1.0 / 39916800.0,
    1.0 / 6227020800.0, -1.0 / 1307674368000.0, 1.0 / 355687428096000.0,
    -1.0 / 121645100408832000.0, 1.0 / 51090942171709440000.0, -1.0 / 25852016738884978212864.0,
};
static const double COSINE[TERMS] = {
    1.0 / 1.0, -1.0 / 2.0, 1.0 / 24.0, -1.0 / 720.0, 1.0 / 40320.0, -1.0 / 3628800.0,
    1.0 / 479001600.0, -1.0 / 87178291200.0, 1.0 / 20922789888000.0, -1.0 / 6402373705728000.0,
    1.0 / 2432902008176640000.0, -1.0 / 1124000727777607680000.0,
};
#if defined(__clang__)
#define OPAQUE __attribute__((noinline)) static
#else
#define OPAQUE __attribute__((noipa)) static
#endif
#define INLINE static inline __attribute__((always_inline))
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define NAME(x) JOIN(x, SUFFIX)

#define REAL double
#define SUFFIX _double
#include "core.c"
#undef REAL
#undef SUFFIX
#define REAL float
#define SUFFIX _float
#include "core.c"
#include "network.c"

#else

typedef REAL NAME(vec) __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(REAL))));
typedef double NAME(wide)
    __attribute__((vector_size(VECTOR_BYTES / sizeof(REAL) * 8), aligned(sizeof(double))));
#define VEC NAME(vec)
#define WIDE NAME(wide)
#define LANES ((long)(VECTOR_BYTES / sizeof(REAL)))
#define MOST_FUNCTIONS 4
#define CHUNK ((long)(512 / sizeof(REAL)))

/* M (pairs, S) += W (pairs, n) psi (n, S) for `vectors` vectors of psi. */
INLINE void NAME(multiply)(const REAL *W, const REAL *psi, long S, long n, double *M, long rows,
                           const int vectors, const int pairs) {
    VEC sum[REGISTERS];
#pragma GCC unroll 24
    for (int k = 0; k < vectors * pairs; k++) sum[k] = (VEC){0};
    for (long i = 0; i < n; i++) {
        VEC p[MOST_FUNCTIONS];
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) p[v] = *(const VEC *)(psi + i * S + v * LANES);
#pragma GCC unroll 24
        for (int k = 0; k < pairs; k++) {
            const REAL w = W[k * CHUNK + i];
#pragma GCC unroll 4
            for (int v = 0; v < vectors; v++) sum[k * vectors + v] += w * p[v];
        }
    }
#pragma GCC unroll 24
    for (int k = 0; k < pairs; k++)
        if (k < rows)
#pragma GCC unroll 4
            for (int v = 0; v < vectors; v++)
                *(WIDE *)(M + k * S + v * LANES) +=
                    __builtin_convertvector(sum[k * vectors + v], WIDE);
}

/* M (R(R+1)/2, S) += moments of Z (R, n) and psi (n, S), a tile of pairs at a time. */
INLINE void NAME(moments_of)(const REAL *Z, const REAL *psi, long R, long S, long n, double *M,
                             const int most) {
    const int pairs = REGISTERS / most;
    REAL W[REGISTERS * 512 / sizeof(REAL)] __attribute__((aligned(64)));
    const long total = R * (R + 1) / 2, columns = S / LANES;
    long r = 0, q = 0;
    for (long start = 0; start < total; start += pairs) {
        for (int k = 0; k < pairs; k++) {
            const REAL *a = Z + r * CHUNK, *b = Z + q * CHUNK;
            for (long i = 0; i < n; i++) W[k * CHUNK + i] = a[i] * b[i];
            if (start + k + 1 < total && ++q == R) q = ++r;
        }
        const long rows = total - start < pairs ? total - start : pairs;
        double *to = M + start * S;
        long c = 0;
        for (; c + most <= columns; c += most)
            NAME(multiply)(W, psi + c * LANES, S, n, to + c * LANES, rows, most, pairs);
        for (; c < columns; c++)
            NAME(multiply)(W, psi + c * LANES, S, n, to + c * LANES, rows, 1, pairs);
    }
}

static void NAME(moments)(const REAL *Z, const REAL *psi, long R, long S, long n, double *M) {
    const long columns = S / LANES;
    /* the widest tile that leaves no column over */
    if (columns % 4 == 0) NAME(moments_of)(Z, psi, R, S, n, M, 4);
    else if (columns % 3 == 0) NAME(moments_of)(Z, psi, R, S, n, M, 3);
    else if (columns % 2 == 0) NAME(moments_of)(Z, psi, R, S, n, M, 2);
    else NAME(moments_of)(Z, psi, R, S, n, M, 1);
}

/* F (rows, n) = V phi from row `from` on, `wide` vectors of rows of the table at a time. */
INLINE long NAME(product)(const REAL *V, const REAL *phi, long I, long ldp, long from, long n,
                          REAL *F, long ld, const int rows, const int wide) {
    long k = from;
    for (; k + wide * LANES <= n; k += wide * LANES) {
        VEC sum[16];
#pragma GCC unroll 16
        for (int t = 0; t < rows * wide; t++) sum[t] = (VEC){0};
        for (long i = 0; i < I; i++) {
            const REAL *p = phi + i * ldp + k;
#pragma GCC unroll 4
            for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
                for (int v = 0; v < wide; v++)
                    sum[r * wide + v] += *(const VEC *)(p + v * LANES) * V[r * I + i];
        }
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
            for (int v = 0; v < wide; v++) *(VEC *)(F + r * ld + k + v * LANES) = sum[r * wide + v];
    }
    return k;
}

/* Opaque to the optimiser: wherever it is called from, the same bits. */
OPAQUE REAL NAME(dot)(const REAL *V, const REAL *phi, long I, long ldp) {
    REAL sum = 0;
    for (long i = 0; i < I; i++) sum += phi[i * ldp] * V[i];
    return sum;
}

INLINE void NAME(some_factors)(const REAL *V, const REAL *phi, long I, long ldp, long n, REAL *F,
                               long ld, const int rows) {
    long k = NAME(product)(V, phi, I, ldp, 0, n, F, ld, rows, 4);
    k = NAME(product)(V, phi, I, ldp, k, n, F, ld, rows, 1);
    for (; k < n; k++)
        for (int r = 0; r < rows; r++) F[r * ld + k] = NAME(dot)(V + r * I, phi + k, I, ldp);
}

INLINE void NAME(factors)(const REAL *V, const REAL *phi, long R, long I, long ldp, long n, REAL *F,
                          long ld) {
    long r = 0;
    for (; r + 4 <= R; r += 4) NAME(some_factors)(V + r * I, phi, I, ldp, n, F + r * ld, ld, 4);
    for (; r < R; r++) NAME(some_factors)(V + r * I, phi, I, ldp, n, F + r * ld, ld, 1);
}

/* out (R, n) = (V phi) * times; times may be NULL. */
void NAME(factor)(const REAL *V, const REAL *phi, const REAL *times, long R, long I, long n,
                  REAL *out) {
    NAME(factors)(V, phi, R, I, n, n, out, n);
    if (times)
        for (long k = 0; k < R * n; k++) out[k] *= times[k];
}

/* sums (rows, functions) += z phi^T, lane by lane, and what is left over to rhs. */
INLINE void NAME(inner)(const REAL *z, const REAL *phi, long I, long ldp, long n, WIDE *sums,
                        double *rhs, const int rows, const int functions) {
    VEC sum[16];
#pragma GCC unroll 16
    for (int t = 0; t < rows * functions; t++) sum[t] = (VEC){0};
    long k = 0;
    for (; k + LANES <= n; k += LANES) {
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
            for (int i = 0; i < functions; i++)
                sum[r * functions + i] +=
                    *(const VEC *)(z + r * CHUNK + k) * *(const VEC *)(phi + i * ldp + k);
    }
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (int i = 0; i < functions; i++) {
            sums[r * I + i] += __builtin_convertvector(sum[r * functions + i], WIDE);
            for (long m = k; m < n; m++) rhs[r * I + i] += z[r * CHUNK + m] * phi[i * ldp + m];
        }
}

/* The right-hand side Z diag(e) phi^T; Z (R, n) is overwritten by Z diag(e). */
INLINE void NAME(right_side)(REAL *Z, const REAL *e, const REAL *phi, long R, long I, long ldp,
                             long n, WIDE *sums, double *rhs) {
    for (long r = 0; r < R; r++)
        for (long k = 0; k < n; k++) Z[r * CHUNK + k] *= e[k];
    for (long r = 0; r < R;) {
        const int rows = r + 4 <= R ? 4 : 1;
        for (long i = 0; i < I;) {
            const int functions = i + 4 <= I ? 4 : 1;
            const REAL *z = Z + r * CHUNK, *p = phi + i * ldp;
            WIDE *to = sums + r * I + i;
            double *rest = rhs + r * I + i;
            if (rows == 4 && functions == 4) NAME(inner)(z, p, I, ldp, n, to, rest, 4, 4);
            else if (rows == 4) NAME(inner)(z, p, I, ldp, n, to, rest, 4, 1);
            else if (functions == 4) NAME(inner)(z, p, I, ldp, n, to, rest, 1, 4);
            else NAME(inner)(z, p, I, ldp, n, to, rest, 1, 1);
            i += functions;
        }
        r += rows;
    }
}

/* M (R(R+1)/2, S) of a block of n rows from Z (R, n); `work` holds R CHUNK numbers. */
void NAME(gram)(const REAL *Z, const REAL *psi, long R, long S, long n, REAL *work, double *M) {
    memset(M, 0, sizeof(double) * R * (R + 1) / 2 * S);
    for (long start = 0; start < n; start += CHUNK) {
        const long m = n - start < CHUNK ? n - start : CHUNK;
        for (long r = 0; r < R; r++)
            memcpy(work + r * CHUNK, Z + r * n + start, sizeof(REAL) * m);
        NAME(moments)(work, psi + start * S, R, S, m, M);
    }
}

/* M (R(R+1)/2, S), rhs (R, I), rss of a block of n rows; left, right, weight may be NULL.
 * CHUNK rows are worked on at a time; `work` holds 2 R CHUNK numbers, `lanes` R I LANES. */
void NAME(core)(const REAL *left, const REAL *right, const REAL *V, const REAL *phi,
                const REAL *psi, const double *y, const double *weight, long R, long I, long S,
                long n, REAL *work, double *lanes, double *M, double *rhs, double *rss) {
    WIDE *sums = (WIDE *)lanes;
    REAL *Z = work, *F = work + R * CHUNK;
    memset(M, 0, sizeof(double) * R * (R + 1) / 2 * S);
    memset(rhs, 0, sizeof(double) * R * I);
    memset(lanes, 0, sizeof(WIDE) * R * I);
    double squares = 0;
    for (long start = 0; start < n; start += CHUNK) {
        const long m = n - start < CHUNK ? n - start : CHUNK;
        for (long r = 0; r < R; r++) {
            REAL *z = Z + r * CHUNK;
            const REAL *a = left ? left + r * n + start : NULL;
            const REAL *b = right ? right + r * n + start : NULL;
            if (a && b) for (long k = 0; k < m; k++) z[k] = a[k] * b[k];
            else if (a || b) memcpy(z, a ? a : b, sizeof(REAL) * m);
            else for (long k = 0; k < m; k++) z[k] = 1;
        }
        NAME(moments)(Z, psi + start * S, R, S, m, M);
        NAME(factors)(V, phi + start, R, I, n, m, F, CHUNK);
        REAL f[512 / sizeof(REAL)], e[512 / sizeof(REAL)];
        for (long k = 0; k < m; k++) f[k] = 0;
        for (long r = 0; r < R; r++)
            for (long k = 0; k < m; k++) f[k] += Z[r * CHUNK + k] * F[r * CHUNK + k];
        for (long k = 0; k < m; k++) {
            const double misfit = y[start + k] - f[k];
            const double weighted = weight ? weight[start + k] * misfit : misfit;
            squares += weighted * misfit;
            e[k] = (REAL)weighted;
        }
        NAME(right_side)(Z, e, phi + start, R, I, n, m, sums, rhs);
    }
    for (long k = 0; k < R * I; k++)
        for (int l = 0; l < LANES; l++) rhs[k] += sums[k][l];
    *rss = squares;
}

/* out (I, ld) = a_k cos(k pi u) for n rows with u clipped to [0, 1]: one rotation per function.
 * Opaque to the optimiser: wherever it is called from, the same bits. */
OPAQUE void NAME(rotate)(const double *u, const double *a, long I, long n, REAL *out, long ld) {
    double c1[CHUNK_ROWS], s1[CHUNK_ROWS], c[CHUNK_ROWS], s[CHUNK_ROWS];
    for (long i = 0; i < n; i++) {
        const double t = u[i] < 0 ? 0 : u[i] > 1 ? 1 : u[i];
        /* cos(pi t) = -sin(x), sin(pi t) = cos(x) with |x| <= pi / 2 */
        const double x = PI * (t - 0.5), q = x * x;
        double sine = 0, cosine = 0;
#pragma GCC unroll 12
        for (int k = TERMS - 1; k >= 0; k--) {
            sine = sine * q + SINE[k];
            cosine = cosine * q + COSINE[k];
        }
        c1[i] = -(sine * x);
        s1[i] = cosine;
        c[i] = 1;
        s[i] = 0;
    }
    for (long k = 0; k < I; k++) {
        REAL *to = out + k * ld;
        const double scale = a[k];
        for (long i = 0; i < n; i++) {
            to[i] = (REAL)(scale * c[i]);
            const double turned = c[i] * c1[i] - s[i] * s1[i];
            s[i] = s[i] * c1[i] + c[i] * s1[i];
            c[i] = turned;
        }
    }
}

/* phi (I, n) of a cosine basis with amplitudes a. */
void NAME(cosines)(const double *u, const double *a, long I, long n, REAL *phi) {
    for (long start = 0; start < n; start += CHUNK_ROWS) {
        const long m = n - start < CHUNK_ROWS ? n - start : CHUNK_ROWS;
        NAME(rotate)(u + start, a, I, m, phi + start, n);
    }
}

/* out (R, n) = (V phi) * times without phi in memory; times may be NULL; work holds I CHUNK_ROWS. */
void NAME(cosine_factor)(const double *u, const double *a, const REAL *V, const REAL *times, long R,
                         long I, long n, REAL *work, REAL *out) {
    for (long start = 0; start < n; start += CHUNK_ROWS) {
        const long m = n - start < CHUNK_ROWS ? n - start : CHUNK_ROWS;
        NAME(rotate)(u + start, a, I, m, work, CHUNK_ROWS);
        NAME(factors)(V, work, R, I, CHUNK_ROWS, m, out + start, n);
        if (times)
            for (long r = 0; r < R; r++)
                for (long k = 0; k < m; k++) out[r * n + start + k] *= times[r * n + start + k];
    }
}

/* psi (n, S) of a cosine basis: amplitudes a (zero where psi is padded) times row weights. */
void NAME(cosine_products)(const double *u, const double *a, const double *weight, long S, long n,
                           REAL *work, REAL *psi) {
    for (long start = 0; start < n; start += CHUNK_ROWS) {
        const long m = n - start < CHUNK_ROWS ? n - start : CHUNK_ROWS;
        NAME(rotate)(u + start, a, S, m, work, CHUNK_ROWS);
        for (long i = 0; i < m; i++) {
            const REAL w = weight ? (REAL)weight[start + i] : 1;
            REAL *to = psi + (start + i) * S;
            for (long k = 0; k < S; k++) to[k] = work[k * CHUNK_ROWS + i] * w;
        }
    }
}

#undef VEC
#undef WIDE
#undef LANES
#undef MOST_FUNCTIONS
#undef CHUNK
#endif
