// The loops of fft.c, a template: T is the type, V a vector of WIDE of them, N(name) its names.
//
// A Stockham pass of radix r reads elements p + count * j and writes r * p + k, so that no pass
// reorders. The lanes, and what earlier passes have put side by side, are |s| neighbours that get
// the same factors: loops run over them, or over p in the first pass of a single transform.

#define XR(j) xr[(p + m * (j)) * s + q]
#define XI(j) xi[(p + m * (j)) * s + q]
// Stores output k, multiplied by its factor.
#define PUT0(r, re, im) (yr[p * (r)*s + q] = (re), yi[p * (r)*s + q] = (im))
#define PUT(r, k, re, im)                                 \
  do {                                                    \
    T a_ = (re), b_ = (im);                               \
    T c_ = wr[((k)-1) * m + p], s_ = wi[((k)-1) * m + p]; \
    yr[(p * (r) + (k)) * s + q] = a_ * c_ - b_ * s_;      \
    yi[(p * (r) + (k)) * s + q] = a_ * s_ + b_ * c_;      \
  } while (0)

#define PASS(r, BODY)                                                                \
  static void N(pass##r)(const rn_fft_pass_t* pass, int64_t s, const T* restrict xr, \
                         const T* restrict xi, T* restrict yr, T* restrict yi) {     \
    const int64_t m = pass->count;                                                   \
    const T* restrict wr = pass->twiddles;                                           \
    const T* restrict wi = wr + ((r)-1) * m;                                         \
    if (s == 1) {                                                                    \
      const int64_t q = 0;                                                           \
      RN_IVDEP for (int64_t p = 0; p < m; ++p) { BODY }                              \
    } else {                                                                         \
      for (int64_t p = 0; p < m; ++p) RN_IVDEP for (int64_t q = 0; q < s; ++q) {     \
          BODY                                                                       \
        }                                                                            \
    }                                                                                \
  }

#define BODY2                                       \
  T ar = XR(0), ai = XI(0), br = XR(1), bi = XI(1); \
  PUT0(2, ar + br, ai + bi);                        \
  PUT(2, 1, ar - br, ai - bi);
PASS(2, BODY2)

#define BODY3                                             \
  const T h_ = (T)0.86602540378443864676;                 \
  T ar = XR(0), ai = XI(0);                               \
  T pr = XR(1) + XR(2), pi = XI(1) + XI(2);               \
  T nr = (XR(1) - XR(2)) * h_, ni = (XI(1) - XI(2)) * h_; \
  T cr = ar - pr * (T)0.5, ci = ai - pi * (T)0.5;         \
  PUT0(3, ar + pr, ai + pi);                              \
  PUT(3, 1, cr + ni, ci - nr);                            \
  PUT(3, 2, cr - ni, ci + nr);
PASS(3, BODY3)

#define BODY4                                                                       \
  T ar = XR(0) + XR(2), ai = XI(0) + XI(2), br = XR(0) - XR(2), bi = XI(0) - XI(2); \
  T cr = XR(1) + XR(3), ci = XI(1) + XI(3), dr = XR(1) - XR(3), di = XI(1) - XI(3); \
  PUT0(4, ar + cr, ai + ci);                                                        \
  PUT(4, 1, br + di, bi - dr);                                                      \
  PUT(4, 2, ar - cr, ai - ci);                                                      \
  PUT(4, 3, br - di, bi + dr);
PASS(4, BODY4)

#define BODY5                                                                       \
  const T c1_ = (T)0.30901699437494742410, c2_ = (T)-0.80901699437494742410;        \
  const T s1_ = (T)0.95105651629515357212, s2_ = (T)0.58778525229247312917;         \
  T ar = XR(0), ai = XI(0);                                                         \
  T pr = XR(1) + XR(4), pi = XI(1) + XI(4), nr = XR(1) - XR(4), ni = XI(1) - XI(4); \
  T tr = XR(2) + XR(3), ti = XI(2) + XI(3), ur = XR(2) - XR(3), ui = XI(2) - XI(3); \
  T br = ar + c1_ * pr + c2_ * tr, bi = ai + c1_ * pi + c2_ * ti;                   \
  T cr = ar + c2_ * pr + c1_ * tr, ci = ai + c2_ * pi + c1_ * ti;                   \
  T dr = s1_ * nr + s2_ * ur, di = s1_ * ni + s2_ * ui;                             \
  T er = s2_ * nr - s1_ * ur, ei = s2_ * ni - s1_ * ui;                             \
  PUT0(5, ar + pr + tr, ai + pi + ti);                                              \
  PUT(5, 1, br + di, bi - dr);                                                      \
  PUT(5, 2, cr + ei, ci - er);                                                      \
  PUT(5, 3, cr - ei, ci + er);                                                      \
  PUT(5, 4, br - di, bi + dr);
PASS(5, BODY5)

#define BODY7                                                                           \
  const T c1_ = (T)0.62348980185873353053, s1_ = (T)0.78183148246802980871;             \
  const T c2_ = (T)-0.22252093395631440429, s2_ = (T)0.97492791218182360702;            \
  const T c3_ = (T)-0.90096886790241912624, s3_ = (T)0.43388373911755812048;            \
  T ar = XR(0), ai = XI(0);                                                             \
  T pr = XR(1) + XR(6), pi = XI(1) + XI(6), nr = XR(1) - XR(6), ni = XI(1) - XI(6);     \
  T tr = XR(2) + XR(5), ti = XI(2) + XI(5), ur = XR(2) - XR(5), ui = XI(2) - XI(5);     \
  T vr = XR(3) + XR(4), vi = XI(3) + XI(4), xr_ = XR(3) - XR(4), xi_ = XI(3) - XI(4);   \
  T br = ar + c1_ * pr + c2_ * tr + c3_ * vr, bi = ai + c1_ * pi + c2_ * ti + c3_ * vi; \
  T cr = ar + c2_ * pr + c3_ * tr + c1_ * vr, ci = ai + c2_ * pi + c3_ * ti + c1_ * vi; \
  T dr = ar + c3_ * pr + c1_ * tr + c2_ * vr, di = ai + c3_ * pi + c1_ * ti + c2_ * vi; \
  T er = s1_ * nr + s2_ * ur + s3_ * xr_, ei = s1_ * ni + s2_ * ui + s3_ * xi_;         \
  T fr = s2_ * nr - s3_ * ur - s1_ * xr_, fi = s2_ * ni - s3_ * ui - s1_ * xi_;         \
  T gr = s3_ * nr - s1_ * ur + s2_ * xr_, gi = s3_ * ni - s1_ * ui + s2_ * xi_;         \
  PUT0(7, ar + pr + tr + vr, ai + pi + ti + vi);                                        \
  PUT(7, 1, br + ei, bi - er);                                                          \
  PUT(7, 2, cr + fi, ci - fr);                                                          \
  PUT(7, 3, dr + gi, di - gr);                                                          \
  PUT(7, 4, dr - gi, di + gr);                                                          \
  PUT(7, 5, cr - fi, ci + fr);                                                          \
  PUT(7, 6, br - ei, bi + er);
PASS(7, BODY7)

// Two transforms of four elements, the even and the odd ones, then one of two.
#define BODY8                                                                                \
  const T h_ = (T)0.70710678118654752440;                                                    \
  T ar = XR(0) + XR(4), ai = XI(0) + XI(4), br = XR(0) - XR(4), bi = XI(0) - XI(4);          \
  T cr = XR(2) + XR(6), ci = XI(2) + XI(6), dr = XR(2) - XR(6), di = XI(2) - XI(6);          \
  T e0r = ar + cr, e0i = ai + ci, e2r = ar - cr, e2i = ai - ci;                              \
  T e1r = br + di, e1i = bi - dr, e3r = br - di, e3i = bi + dr;                              \
  T fr = XR(1) + XR(5), fi = XI(1) + XI(5), gr = XR(1) - XR(5), gi = XI(1) - XI(5);          \
  T kr = XR(3) + XR(7), ki = XI(3) + XI(7), lr = XR(3) - XR(7), li = XI(3) - XI(7);          \
  T o0r = fr + kr, o0i = fi + ki, o2r = fi - ki, o2i = kr - fr;                              \
  T ur = gr + li, ui = gi - lr, vr = gr - li, vi = gi + lr;                                  \
  T o1r = (ur + ui) * h_, o1i = (ui - ur) * h_, o3r = (vi - vr) * h_, o3i = -(vr + vi) * h_; \
  PUT0(8, e0r + o0r, e0i + o0i);                                                             \
  PUT(8, 1, e1r + o1r, e1i + o1i);                                                           \
  PUT(8, 2, e2r + o2r, e2i + o2i);                                                           \
  PUT(8, 3, e3r + o3r, e3i + o3i);                                                           \
  PUT(8, 4, e0r - o0r, e0i - o0i);                                                           \
  PUT(8, 5, e1r - o1r, e1i - o1i);                                                           \
  PUT(8, 6, e2r - o2r, e2i - o2i);                                                           \
  PUT(8, 7, e3r - o3r, e3i - o3i);
PASS(8, BODY8)

// Neighbours that the pass of any odd radix processes at a time.
#define CHUNK 8

// Sums and differences of the elements j and radix - j of some neighbours.
typedef struct N(pairs_t) {
  T sum_re[RN_FFT_MAX_PRIME / 2 + 1][CHUNK], sum_im[RN_FFT_MAX_PRIME / 2 + 1][CHUNK];
  T dif_re[RN_FFT_MAX_PRIME / 2 + 1][CHUNK], dif_im[RN_FFT_MAX_PRIME / 2 + 1][CHUNK];
} N(pairs_t);

// Butterfly p of |n| neighbours from |x| on: outputs k and radix - k share their sums.
static void N(odd_butterfly)(const rn_fft_pass_t* pass, int64_t s, int64_t p, const N(pairs_t) * t,
                             T* restrict yr, T* restrict yi, int64_t n) {
  const int64_t r = pass->radix, m = pass->count;
  const T *roots = pass->roots, *wr = pass->twiddles, *wi = wr + (r - 1) * m;
  for (int64_t k = 1; k <= r / 2; ++k) {
    T ar[CHUNK], ai[CHUNK], br[CHUNK] = {0}, bi[CHUNK] = {0};
    memcpy(ar, t->sum_re[0], sizeof ar);
    memcpy(ai, t->sum_im[0], sizeof ai);
    int64_t at = 0;
    for (int64_t j = 1; j <= r / 2; ++j) {
      at = at + k >= r ? at + k - r : at + k;
      T c = roots[at], d = roots[r + at];
      for (int64_t q = 0; q < CHUNK; ++q) {
        ar[q] += c * t->sum_re[j][q];
        ai[q] += c * t->sum_im[j][q];
        br[q] += d * t->dif_re[j][q];
        bi[q] += d * t->dif_im[j][q];
      }
    }
    T c1 = wr[(k - 1) * m + p], s1 = wi[(k - 1) * m + p];
    T c2 = wr[(r - k - 1) * m + p], s2 = wi[(r - k - 1) * m + p];
    for (int64_t q = 0; q < n; ++q) {
      T re = ar[q] + bi[q], im = ai[q] - br[q];
      yr[k * s + q] = re * c1 - im * s1;
      yi[k * s + q] = re * s1 + im * c1;
      re = ar[q] - bi[q], im = ai[q] + br[q];
      yr[(r - k) * s + q] = re * c2 - im * s2;
      yi[(r - k) * s + q] = re * s2 + im * c2;
    }
  }
}

static void N(pass_odd)(const rn_fft_pass_t* pass, int64_t s, const T* restrict xr,
                        const T* restrict xi, T* restrict yr, T* restrict yi) {
  const int64_t r = pass->radix, m = pass->count;
  N(pairs_t) t;
  memset(&t, 0, sizeof t);
  for (int64_t p = 0; p < m; ++p) {
    for (int64_t from = 0; from < s; from += CHUNK) {
      const int64_t n = s - from < CHUNK ? s - from : CHUNK;
      const T *ar = xr + p * s + from, *ai = xi + p * s + from;
      T *br = yr + p * r * s + from, *bi = yi + p * r * s + from;
      for (int64_t q = 0; q < n; ++q) {
        t.sum_re[0][q] = br[q] = ar[q];
        t.sum_im[0][q] = bi[q] = ai[q];
      }
      for (int64_t j = 1; j <= r / 2; ++j) {
        const int64_t u = j * m * s, v = (r - j) * m * s;
        for (int64_t q = 0; q < n; ++q) {
          t.sum_re[j][q] = ar[u + q] + ar[v + q];
          t.sum_im[j][q] = ai[u + q] + ai[v + q];
          t.dif_re[j][q] = ar[u + q] - ar[v + q];
          t.dif_im[j][q] = ai[u + q] - ai[v + q];
          br[q] += t.sum_re[j][q];
          bi[q] += t.sum_im[j][q];
        }
      }
      N(odd_butterfly)(pass, s, p, &t, br, bi, n);
    }
  }
}

static void N(passes)(const rn_fft_plan_t* plan, int64_t s, rn_fft_arrays_t* arrays) {
  for (int32_t i = 0; i < plan->pass_count; ++i) {
    const rn_fft_pass_t* pass = &plan->passes[i];
    rn_fft_arrays_t a = *arrays;
    switch (pass->radix) {
      case 2:
        N(pass2)(pass, s, a.re, a.im, a.re2, a.im2);
        break;
      case 3:
        N(pass3)(pass, s, a.re, a.im, a.re2, a.im2);
        break;
      case 4:
        N(pass4)(pass, s, a.re, a.im, a.re2, a.im2);
        break;
      case 5:
        N(pass5)(pass, s, a.re, a.im, a.re2, a.im2);
        break;
      case 7:
        N(pass7)(pass, s, a.re, a.im, a.re2, a.im2);
        break;
      case 8:
        N(pass8)(pass, s, a.re, a.im, a.re2, a.im2);
        break;
      default:
        N(pass_odd)(pass, s, a.re, a.im, a.re2, a.im2);
    }
    *arrays = (rn_fft_arrays_t){a.re2, a.im2, a.re, a.im};
    s *= pass->radix;
  }
}

// Multiplies |count| rows of lanes by complex factors, one per row.
static void N(multiply)(T* restrict re, T* restrict im, const T* wr, const T* wi, int64_t count,
                        int64_t lanes) {
  if (lanes == 1) {
    for (int64_t j = 0; j < count; ++j) {
      T a = re[j] * wr[j] - im[j] * wi[j], b = re[j] * wi[j] + im[j] * wr[j];
      re[j] = a, im[j] = b;
    }
    return;
  }
  for (int64_t j = 0; j < count; ++j) {
    T *x = re + j * lanes, *y = im + j * lanes, c = wr[j], d = wi[j];
    RN_IVDEP for (int64_t q = 0; q < lanes; ++q) {
      T a = x[q] * c - y[q] * d, b = x[q] * d + y[q] * c;
      x[q] = a, y[q] = b;
    }
  }
}

// Bluestein: j k = (j^2 + k^2 - (k - j)^2) / 2, so that a transform of any length is a convolution
// with a chirp, which transforms of a better length compute.
static void N(run)(const rn_fft_plan_t* plan, int64_t lanes, rn_fft_arrays_t* arrays) {
  if (!plan->chirp) {
    N(passes)(plan, lanes, arrays);
    return;
  }
  const int64_t n = plan->n, m = plan->inner;
  const T *chirp = plan->chirp, *filter = plan->filter;
  const size_t rest = (size_t)((m - n) * lanes) * sizeof(T);
  N(multiply)(arrays->re, arrays->im, chirp, chirp + n, n, lanes);
  memset((T*)arrays->re + n * lanes, 0, rest);
  memset((T*)arrays->im + n * lanes, 0, rest);
  N(passes)(plan, lanes, arrays);
  N(multiply)(arrays->re, arrays->im, filter, filter + m, m, lanes);
  rn_fft_arrays_t back = {arrays->im, arrays->re, arrays->im2, arrays->re2};
  N(passes)(plan, lanes, &back);
  *arrays = (rn_fft_arrays_t){back.im, back.re, back.im2, back.re2};
  N(multiply)(arrays->re, arrays->im, chirp, chirp + n, n, lanes);
}

static void N(split)(const void* in, void* re, void* im, int64_t count) {
  const T* restrict x = in;
  T* restrict a = re, * restrict b = im;
  for (int64_t i = 0; i < count; ++i) a[i] = x[2 * i], b[i] = x[2 * i + 1];
}

static void N(join)(const void* re, const void* im, void* out, int64_t count, double scale) {
  const T* restrict a = re, * restrict b = im;
  T* restrict y = out;
  const T by = (T)scale;
  for (int64_t i = 0; i < count; ++i) y[2 * i] = a[i] * by, y[2 * i + 1] = b[i] * by;
}

static void N(scale)(const void* re, void* out, int64_t count, double scale) {
  const T* restrict a = re;
  T* restrict y = out;
  for (int64_t i = 0; i < count; ++i) y[i] = a[i] * (T)scale;
}

// Where number j of the lanes is: of complex rows, every other number is an imaginary part.
#define LANE_AT(j) (im ? ((j) % 2 ? im : re) + (j) / 2 * LANES : re + (j)*LANES)

// Blocks of WIDE numbers of WIDE rows.
static void N(turn_in)(const void* const* in, void* out_re, void* out_im, int64_t count) {
  const T* const* rows = (const T* const*)in;
  T *re = out_re, *im = out_im;
  const int64_t numbers = im ? 2 * count : count;
  int64_t j = 0;
  for (; j + WIDE <= numbers; j += WIDE)
    for (int64_t l = 0; l < LANES; l += WIDE) {
      V v[WIDE];
      RN_UNROLL for (int i = 0; i < WIDE; ++i) v[i] = *(const V_ANY*)(rows[l + i] + j);
      N(turn)(v);
      RN_UNROLL for (int i = 0; i < WIDE; ++i) * (V_ANY*)(LANE_AT(j + i) + l) = v[i];
    }
  for (; j < numbers; ++j) {
    T* to = LANE_AT(j);
    for (int64_t l = 0; l < LANES; ++l) to[l] = rows[l][j];
  }
}

static void N(turn_out)(const void* in_re, const void* in_im, void* const* out, int64_t count,
                        double scale) {
  T* const* rows = (T* const*)out;
  const T *re = in_re, *im = in_im;
  const int64_t numbers = im ? 2 * count : count;
  const T by = (T)scale;
  int64_t j = 0;
  for (; j + WIDE <= numbers; j += WIDE)
    for (int64_t l = 0; l < LANES; l += WIDE) {
      V v[WIDE];
      RN_UNROLL for (int i = 0; i < WIDE; ++i) v[i] = *(const V_ANY*)(LANE_AT(j + i) + l) * by;
      N(turn)(v);
      RN_UNROLL for (int i = 0; i < WIDE; ++i) * (V_ANY*)(rows[l + i] + j) = v[i];
    }
  for (; j < numbers; ++j) {
    const T* from = LANE_AT(j);
    for (int64_t l = 0; l < LANES; ++l) rows[l][j] = from[l] * by;
  }
}

#define FROM_HALF(A, B)                                       \
  T er = (a[A] + a[B]) * (T)0.5, ei = (b[A] - b[B]) * (T)0.5; \
  T dr = (b[A] + b[B]) * (T)0.5, di = (a[B] - a[A]) * (T)0.5; \
  yr[A] = er + (dr * c[k] - di * s[k]);                       \
  yi[A] = ei + (dr * s[k] + di * c[k]);

// WIDE elements from |A| on, and backwards those from |B| on.
#define AHEAD_AT(x, i) (*(const V_ANY*)((x) + (i)))
#define BACK_AT(x, i) REVERSED((V)AHEAD_AT(x, i))
#define FROM_HALF_WIDE(A, B)                                            \
  const V ar = AHEAD_AT(a, A), ai = AHEAD_AT(b, A), br = BACK_AT(a, B); \
  const V bi = BACK_AT(b, B), ck = AHEAD_AT(c, A), sk = AHEAD_AT(s, A); \
  const V er = (ar + br) * (T)0.5, ei = (ai - bi) * (T)0.5;             \
  const V dr = (ai + bi) * (T)0.5, di = (br - ar) * (T)0.5;             \
  *(V_ANY*)(yr + (A)) = er + (dr * ck - di * sk);                       \
  *(V_ANY*)(yi + (A)) = ei + (dr * sk + di * ck);

static void N(from_half)(const void* re, const void* im, const void* roots, void* out_re,
                         void* out_im, int64_t h, int64_t lanes) {
  const T* restrict a = re, * restrict b = im, * restrict c = roots, * restrict s = c + h + 1;
  T* restrict yr = out_re, * restrict yi = out_im;
  for (int64_t q = 0; q < lanes; ++q) {
    yr[q] = a[q] + b[q], yi[q] = 0;
    yr[h * lanes + q] = a[q] - b[q], yi[h * lanes + q] = 0;
  }
  if (lanes == 1) {
    int64_t k = 1;
    for (; k + WIDE <= h; k += WIDE) {
      FROM_HALF_WIDE(k, h - k - WIDE + 1)
    }
    for (; k < h; ++k) {
      FROM_HALF(k, h - k)
    }
    return;
  }
  for (int64_t k = 1; k < h; ++k) RN_IVDEP for (int64_t q = 0; q < LANES; ++q) {
      FROM_HALF(k * LANES + q, (h - k) * LANES + q)
    }
}

#define TO_HALF(A, B)                       \
  T er = xr[A] + xr[B], ei = xi[A] - xi[B]; \
  T dr = xr[A] - xr[B], di = xi[A] + xi[B]; \
  a[A] = er - (di * c[k] - dr * s[k]);      \
  b[A] = ei + (dr * c[k] + di * s[k]);

#define TO_HALF_WIDE(A, B)                                                 \
  const V ar = AHEAD_AT(xr, A), ai = AHEAD_AT(xi, A), br = BACK_AT(xr, B); \
  const V bi = BACK_AT(xi, B), ck = AHEAD_AT(c, A), sk = AHEAD_AT(s, A);   \
  const V er = ar + br, ei = ai - bi, dr = ar - br, di = ai + bi;          \
  *(V_ANY*)(a + (A)) = er - (di * ck - dr * sk);                           \
  *(V_ANY*)(b + (A)) = ei + (dr * ck + di * sk);

static void N(to_half)(const void* in_re, const void* in_im, const void* roots, void* re, void* im,
                       int64_t h, int64_t lanes) {
  const T* restrict xr = in_re, * restrict xi = in_im, * restrict c = roots, * restrict s = c + h + 1;
  T* restrict a = re, * restrict b = im;
  for (int64_t q = 0; q < lanes; ++q) {
    a[q] = xr[q] + xr[h * lanes + q];
    b[q] = xr[q] - xr[h * lanes + q];
  }
  if (lanes == 1) {
    int64_t k = 1;
    for (; k + WIDE <= h; k += WIDE) {
      TO_HALF_WIDE(k, h - k - WIDE + 1)
    }
    for (; k < h; ++k) {
      TO_HALF(k, h - k)
    }
    return;
  }
  for (int64_t k = 1; k < h; ++k) RN_IVDEP for (int64_t q = 0; q < LANES; ++q) {
      TO_HALF(k * LANES + q, (h - k) * LANES + q)
    }
}

static void N(mirror)(void* re, void* im, int64_t n, int64_t lanes) {
  T *a = re, *b = im;
  for (int64_t q = 0; q < lanes; ++q) b[q] = 0;
  for (int64_t k = 1; k <= n / 2; ++k)
    for (int64_t q = 0; q < lanes; ++q) {
      a[(n - k) * lanes + q] = a[k * lanes + q];
      b[(n - k) * lanes + q] = -b[k * lanes + q];
    }
}

#undef XR
#undef XI
#undef PUT0
#undef PUT
#undef PASS
#undef CHUNK
#undef BODY2
#undef BODY3
#undef BODY4
#undef BODY5
#undef BODY7
#undef BODY8
#undef LANE_AT
#undef FROM_HALF
#undef TO_HALF
#undef AHEAD_AT
#undef BACK_AT
#undef FROM_HALF_WIDE
#undef TO_HALF_WIDE
