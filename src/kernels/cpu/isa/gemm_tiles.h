// GEMM for one real type with register tiles. A template: gemm.c includes it once per type, with
// the type's names defined.
//
//   T V M W    element, register, mask, elements per register
//   NAME(x)    x with the type's suffix
//   LOAD STORE SET1 FMA LOAD_M STORE_M MASK
//   HAS_LOW    if a few rows times panels have a code path of their own
//
// A tile is a few rows of A times a strip of B, a few registers wide, accumulated over k in
// registers. Every element of C is the same chain of operations in order of k, wherever its tile
// starts and even if the partial sum was stored to C in between. So no partitioning of a GEMM
// changes a bit.

#define next_t NAME(next_t)
#define fetch_row_ NAME(fetch_row)
#define step_ NAME(step)
#define tile_ NAME(tile)
#define strip_ NAME(strip)
#define whole_strip_ NAME(whole_strip)
#define strip_any_ NAME(strip_any)
#define row_of_ NAME(row_of)
#define rows_at_a_time_ NAME(rows_at_a_time)
#define row_ NAME(row)
#define panel_sums_ NAME(panel_sums)
#define panel_row_ NAME(panel_row)
#define dot_ NAME(dot)
#define dots_ NAME(dots)
#define pack_strip_ NAME(pack_strip)
#define pack_ NAME(pack)
#define pack_rows_ NAME(pack_rows)
#define in_place_ NAME(in_place)
#define few_rows_ NAME(few_rows)
#define reads_a_in_place_ NAME(reads_a_in_place)
#define packing_rows_ NAME(packing_rows)
#define block_ NAME(block)
#define depth_ NAME(depth)
#define add_bias_ NAME(add_bias)
#define low_chunk_ NAME(low_chunk)
#define low_strips_ NAME(low_strips)
#define blocks_ NAME(blocks)
#define turned_blocks_ NAME(turned_blocks)
#define gemm_ NAME(gemm)

// Columns per strip of B.
#define STRIP (TILE_REGISTERS * W)
// Strips packed at a time.
#define STRIPS ((int64_t)(BLOCK_BYTES / (STRIP * sizeof(T))))
// Elements per cache line.
#define LINE ((int64_t)(RN_ALIGN / sizeof(T)))

// What to prefetch during a tile: the lines of A behind its rows, and the next C.
typedef struct next_t {
  const T* a;
  int64_t a_lines;
  const T* c;
} next_t;

// Prefetch one row at a time: a burst of prefetches would delay B, which comes from the L2 cache.
INLINE void fetch_row_(const next_t* next, int64_t a_row, int64_t c_row, int row) {
  _Pragma("GCC unroll 8") for (int j = 0; j < TILE_REGISTERS; ++j)
      __builtin_prefetch(next->c + row * c_row + j * W, 1);
  for (int64_t line = 0; line < next->a_lines; ++line)
    __builtin_prefetch(next->a + row * a_row + line * LINE);
}

// One column of A times one row of B. |masked|: the last register of B and C uses only the elements
// in |mask|. |packs|: also packs B into |panel|.
INLINE void step_(int rows, int registers, bool masked, bool packs, const T* a, int64_t a_row,
                  const T* b, int64_t b_row, M mask, T* panel, V sum[][TILE_REGISTERS]) {
  V right[TILE_REGISTERS];
  _Pragma("GCC unroll 8") for (int j = 0; j < registers; ++j) right[j] =
      masked && j == registers - 1 ? LOAD_M(b + j * W, mask) : LOAD(b + j * W);
  if (packs) {
    _Pragma("GCC unroll 8") for (int j = 0; j < registers; ++j) {
      STORE(panel + j * W, right[j]);
      __builtin_prefetch(b + ROWS_AHEAD * b_row + j * W);
    }
  }
  _Pragma("GCC unroll 16") for (int i = 0; i < rows; ++i) {
    const V left = SET1(a[i * a_row]);
    _Pragma("GCC unroll 8") for (int j = 0; j < registers; ++j) sum[i][j] =
        FMA(left, right[j], sum[i][j]);
  }
}

// |next| may be NULL. |ahead|, if not NULL, is where to prefetch B, one line per step.
INLINE void tile_(int rows, int registers, bool masked, bool packs, const T* a, int64_t a_row,
                  int64_t a_column, const T* b, int64_t b_row, T* c, int64_t c_row, int64_t k,
                  bool add, M mask, T* panel, const next_t* next, const T* ahead) {
  V sum[2 * TILE_ROWS][TILE_REGISTERS];
  int last = registers - 1;
  _Pragma("GCC unroll 16") for (int i = 0; i < rows; ++i)
      _Pragma("GCC unroll 8") for (int j = 0; j < registers; ++j) {
    const T* from = c + i * c_row + j * W;
    sum[i][j] = !add ? SET1(0) : masked && j == last ? LOAD_M(from, mask) : LOAD(from);
  }
  int64_t p = 0;
#define STEP                                                                   \
  step_(rows, registers, masked, packs, a, a_row, b, b_row, mask, panel, sum); \
  a += a_column, b += b_row;                                                   \
  if (packs) panel += STRIP
  // Unroll whole tiles by four steps: when two threads share a core, the multiplications leave
  // hardly any instruction slots free.
  if (UNROLLS && (rows == TILE_ROWS || ahead) && registers == TILE_REGISTERS && !masked && !packs) {
    int64_t fours = k / 4 * 4, part = next ? k / (4 * TILE_ROWS) * 4 : fours;
    for (int row = 0; p < fours; ++row) {
      if (next) fetch_row_(next, a_row, c_row, row);
      int64_t end = row < TILE_ROWS - 1 ? p + part : fours;
      for (; p < end; p += 4) {
        _Pragma("GCC unroll 4") for (int i = 0; ahead && i < 4; ++i)
            __builtin_prefetch(ahead + (p + i) * LINE);
        STEP;
        STEP;
        STEP;
        STEP;
      }
    }
  }
  for (; p < k; ++p) {
    STEP;
  }
#undef STEP
  _Pragma("GCC unroll 16") for (int i = 0; i < rows; ++i)
      _Pragma("GCC unroll 8") for (int j = 0; j < registers; ++j) {
    T* to = c + i * c_row + j * W;
    if (masked && j == last)
      STORE_M(to, mask, sum[i][j]);
    else
      STORE(to, sum[i][j]);
  }
}

// All rows of A times |registers| registers of B.
INLINE void strip_(int registers, bool masked, const T* a, int64_t a_row, int64_t a_column,
                   const T* b, int64_t b_row, T* c, int64_t c_row, int64_t m, int64_t k, bool add,
                   M mask, const next_t* next) {
  int64_t i = 0;
#define AT                                                                                        \
  registers, masked, false, a + i *a_row, a_row, a_column, b, b_row, c + i *c_row, c_row, k, add, \
      mask, NULL, next, NULL
#define TILES(rows) \
  for (; i + (rows) <= m; i += (rows)) tile_(rows, AT)
  // A narrow strip needs more rows to keep the multipliers busy.
  if (registers == 1) TILES(2 * TILE_ROWS);
#if TILE_ROWS == 6
  // A tile of two rows would wait for B, so eight rows are two tiles of four.
  for (; i + 6 <= m && m - i != 8; i += 6) tile_(6, AT);
  TILES(4);
#else
  TILES(TILE_ROWS);
#endif
  TILES(2);
  TILES(1);
#undef TILES
#undef AT
}

// Not inlined: the other paths use the registers differently.
static __attribute__((noinline)) void whole_strip_(const T* a, int64_t a_row, int64_t a_column,
                                                   const T* b, int64_t b_row, T* c, int64_t c_row,
                                                   int64_t m, int64_t k, bool add,
                                                   const next_t* next) {
  strip_(TILE_REGISTERS, false, a, a_row, a_column, b, b_row, c, c_row, m, k, add, MASK(1), next);
}

static void strip_any_(int64_t columns, const T* a, int64_t a_row, int64_t a_column, const T* b,
                       int64_t b_row, T* c, int64_t c_row, int64_t m, int64_t k, bool add,
                       const next_t* next) {
  int registers = (int)((columns + W - 1) / W);
  int rest = (int)(columns - (registers - 1) * W);
  if (registers == TILE_REGISTERS && rest == W) {
    whole_strip_(a, a_row, a_column, b, b_row, c, c_row, m, k, add, next);
    return;
  }
  const M mask = MASK(rest);
  if (registers == 1)
    strip_(1, true, a, a_row, a_column, b, b_row, c, c_row, m, k, add, mask, NULL);
  else if (registers == 2)
    strip_(2, true, a, a_row, a_column, b, b_row, c, c_row, m, k, add, mask, NULL);
  else if (registers == 3)
    strip_(3, true, a, a_row, a_column, b, b_row, c, c_row, m, k, add, mask, NULL);
  else
    strip_(TILE_REGISTERS, true, a, a_row, a_column, b, b_row, c, c_row, m, k, add, mask, NULL);
}

// One row of C over many registers of B: enough independent sums to hide the latency.
INLINE void row_of_(const T* a, int64_t a_column, const T* b, int64_t b_row, T* c, int64_t n,
                    int64_t k, bool add) {
  int64_t j = 0;
  for (; j + 8 * W <= n; j += 8 * W) {
    V sum[8];
    _Pragma("GCC unroll 8") for (int r = 0; r < 8; ++r) {
      if (add)
        sum[r] = LOAD(c + j + r * W);
      else
        sum[r] = SET1(0);
    }
    const T* from = b + j;
    for (int64_t p = 0; p < k; ++p, from += b_row) {
      const V left = SET1(a[p * a_column]);
      _Pragma("GCC unroll 8") for (int r = 0; r < 8; ++r) sum[r] =
          FMA(left, LOAD(from + r * W), sum[r]);
    }
    _Pragma("GCC unroll 8") for (int r = 0; r < 8; ++r) STORE(c + j + r * W, sum[r]);
  }
  for (; j < n; j += STRIP)
    strip_any_(n - j < STRIP ? n - j : STRIP, a, 0, a_column, b + j, b_row, c + j, 0, 1, k, add,
               NULL);
}

// The number of rows of B to read from end to end before the next ones: long rows touch as many
// pages.
INLINE int64_t rows_at_a_time_(int64_t b_row, int64_t k) {
  return b_row * (int64_t)sizeof(T) > LONG_ROW_BYTES ? LONG_ROWS : k;
}

static void row_(const rn_gemm_part_t* g) {
  const T *a = g->a, *b = g->b;
  int64_t depth = rows_at_a_time_(g->b_row, g->k);
  for (int64_t p = 0; p < g->k; p += depth)
    row_of_(a + p * g->a_column, g->a_column, b + p * g->b_row, g->b_row, g->c, g->n,
            g->k - p < depth ? g->k - p : depth, p > 0);
}

// Adds |bias| to each of |m| rows of |n| elements, from |from| to |to|, which may be the same.
static __attribute__((noinline)) void add_bias_(const T* from, int64_t from_row, const T* bias,
                                                T* to, int64_t to_row, int64_t m, int64_t n) {
  for (int64_t i = 0; i < m; ++i, from += from_row, to += to_row) {
    int64_t j = 0;
    for (; j + W <= n; j += W) STORE(to + j, LOAD(from + j) + LOAD(bias + j));
    for (; j < n; ++j) to[j] = from[j] + bias[j];
  }
}

// One row of C, |strips| strips of it, times as many strips of panels: each strip is read from end
// to end. Prefetches across the ends of pages, where the CPU does not by itself.
INLINE void panel_sums_(int strips, const rn_gemm_part_t* g, const T* panel, T* c) {
  const T* a = g->a;
  const int64_t step = g->k * STRIP;
  V sum[PANEL_STRIPS][TILE_REGISTERS];
  _Pragma("GCC unroll 4") for (int s = 0; s < strips; ++s)
      _Pragma("GCC unroll 8") for (int j = 0; j < TILE_REGISTERS; ++j) sum[s][j] =
          g->adds ? LOAD(c + s * STRIP + j * W) : SET1(0);
  for (int64_t p = 0; p < g->k; ++p, panel += STRIP) {
    const V left = SET1(a[p * g->a_column]);
    _Pragma("GCC unroll 4") for (int s = 0; s < strips; ++s)
        _Pragma("GCC unroll 8") for (int j = 0; j < TILE_REGISTERS; ++j) {
      const T* from = panel + s * step + j * W;
      if (j * W % LINE == 0) __builtin_prefetch(from + PANEL_ROWS_AHEAD * STRIP);
      sum[s][j] = FMA(left, LOAD(from), sum[s][j]);
    }
  }
  _Pragma("GCC unroll 4") for (int s = 0; s < strips; ++s)
      _Pragma("GCC unroll 8") for (int j = 0; j < TILE_REGISTERS; ++j)
          STORE(c + s * STRIP + j * W, sum[s][j]);
}

// One row of C times panels.
static void panel_row_(const rn_gemm_part_t* g) {
  const T* panel = g->panels;
  T *c = g->c, last[STRIP];
  int64_t j = 0;
  for (; j + PANEL_STRIPS * STRIP <= g->n; j += PANEL_STRIPS * STRIP)
    panel_sums_(PANEL_STRIPS, g, panel + j * g->k, c + j);
  for (; j + STRIP <= g->n; j += STRIP) panel_sums_(1, g, panel + j * g->k, c + j);
  if (j < g->n) {
    size_t bytes = (size_t)(g->n - j) * sizeof(T);
    memset(last, 0, sizeof last);
    if (g->adds) memcpy(last, c + j, bytes);
    panel_sums_(1, g, panel + j * g->k, last);
    memcpy(c + j, last, bytes);
  }
  if (g->bias) add_bias_(c, 0, g->bias, c, 0, 1, g->n);
}

// Columns of B are contiguous: dot products of rows with rows, four at a time.
INLINE void dot_(int count, const T* a, const T* b, int64_t b_column, T* c, int64_t k) {
  V sum[4], more[4];
  _Pragma("GCC unroll 4") for (int j = 0; j < 4; ++j) sum[j] = more[j] = SET1(0);
  int64_t p = 0;
  for (; p + 2 * W <= k; p += 2 * W) {
    const V left = LOAD(a + p), right = LOAD(a + p + W);
    _Pragma("GCC unroll 4") for (int j = 0; j < count; ++j) {
      sum[j] = FMA(left, LOAD(b + j * b_column + p), sum[j]);
      more[j] = FMA(right, LOAD(b + j * b_column + p + W), more[j]);
    }
  }
  for (; p < k; p += W) {
    int rest = k - p < W ? (int)(k - p) : W;
    const M mask = MASK(rest);
    const V left = LOAD_M(a + p, mask);
    _Pragma("GCC unroll 4") for (int j = 0; j < count; ++j) sum[j] =
        FMA(left, LOAD_M(b + j * b_column + p, mask), sum[j]);
  }
  _Pragma("GCC unroll 4") for (int j = 0; j < 4; ++j) sum[j] += more[j];
  NAME(fold)(sum, c, count);
}

static void dots_(const rn_gemm_part_t* g) {
  const T *a = g->a, *b = g->b;
  T* c = g->c;
  int64_t j = 0;
  for (; j + 4 <= g->n; j += 4)
    for (int64_t i = 0; i < g->m; ++i)
      dot_(4, a + i * g->a_row, b + j * g->b_column, g->b_column, c + i * g->c_row + j, g->k);
  for (; j < g->n; ++j)
    for (int64_t i = 0; i < g->m; ++i)
      dot_(1, a + i * g->a_row, b + j * g->b_column, g->b_column, c + i * g->c_row + j, g->k);
}

// Packs |k| rows of |columns| columns of B; each row of the panel is a strip wide, and the part
// beyond |columns| is never read.
static void pack_strip_(const T* b, int64_t b_row, int64_t b_column, int64_t k, int64_t columns,
                        T* panel) {
  if (b_column == 1 && columns == STRIP) {
    for (int64_t p = 0; p < k; ++p, panel += STRIP, b += b_row)
      _Pragma("GCC unroll 8") for (int j = 0; j < TILE_REGISTERS; ++j)
          STORE(panel + j * W, LOAD(b + j * W));
    return;
  }
  if (b_column == 1 && columns % W == 0) {  // rows too short for the processor to fetch ahead
    for (int64_t p = 0; p < k; ++p, panel += STRIP, b += b_row)
      for (int64_t j = 0; j < columns; j += W) {
        __builtin_prefetch(b + PACKED_ROWS_AHEAD * b_row + j);
        STORE(panel + j, LOAD(b + j));
      }
    return;
  }
  if (b_column == 1) {
    for (int64_t p = 0; p < k; ++p, panel += STRIP, b += b_row)
      memcpy(panel, b, (size_t)columns * sizeof *b);
    return;
  }
  int64_t j = 0;
#ifdef TURN
  // Transpose W x W squares in registers.
  int64_t whole = k / W * W;
  for (; j + W <= columns; j += W) {
    const T* from = b + j * b_column;
    for (int64_t p = 0; p < whole; p += W)
      TURN(from + p * b_row, b_column, panel + p * STRIP + j, STRIP);
    for (int64_t p = whole; p < k; ++p)
      for (int i = 0; i < W; ++i) panel[p * STRIP + j + i] = from[p * b_row + i * b_column];
  }
#endif
  // Sixteen rows of the panel at a time stay in the L1 cache.
  for (int64_t p0 = 0; p0 < k; p0 += 16) {
    int64_t p1 = p0 + 16 < k ? p0 + 16 : k;
    for (int64_t i = j; i < columns; ++i)
      for (int64_t p = p0; p < p1; ++p) panel[p * STRIP + i] = b[p * b_row + i * b_column];
  }
}

static void pack_(const rn_gemm_part_t* g, void* panels) {
  const T* b = g->b;
  T* to = panels;
  for (int64_t j = 0; j < g->n; j += STRIP, to += g->k * STRIP)
    pack_strip_(b + j * g->b_column, g->b_row, g->b_column, g->k,
                g->n - j < STRIP ? g->n - j : STRIP, to);
}

// Packs |rows| columns of A, the rows to multiply, into tiles of |k| times TILE_ROWS each. Fills
// all tiles at once, because rows of A that are far apart in memory would evict each other from the
// cache.
static void pack_rows_(const T* a, int64_t a_column, int64_t rows, int64_t k, T* to) {
  for (int64_t p = 0; p < k; ++p, a += a_column, to += TILE_ROWS) {
    int64_t i = 0;
    for (; i + TILE_ROWS <= rows; i += TILE_ROWS) memcpy(to + i * k, a + i, TILE_ROWS * sizeof *to);
    for (int64_t r = 0; i + r < rows; ++r) to[i * k + r] = a[i + r];
  }
}

// B unpacked: a few rows of C at a time, so that C is written in order.
static void in_place_(const rn_gemm_part_t* g) {
  const T *a = g->a, *b = g->b;
  T* c = g->c;
  int64_t step = g->k < 16 ? TILE_ROWS : 8 * TILE_ROWS;
  int64_t depth = rows_at_a_time_(g->b_row, g->k);
  for (int64_t i = 0; i < g->m; i += step) {
    int64_t m = g->m - i < step ? g->m - i : step;
    for (int64_t p = 0; p < g->k; p += depth) {
      int64_t k = g->k - p < depth ? g->k - p : depth;
      for (int64_t j = 0; j < g->n; j += STRIP)
        strip_any_(g->n - j < STRIP ? g->n - j : STRIP, a + i * g->a_row + p * g->a_column,
                   g->a_row, g->a_column, b + p * g->b_row + j, g->b_row, c + i * g->c_row + j,
                   g->c_row, m, k, p > 0, NULL);
    }
  }
}

// Rows [i, i + m) of C, the strips of a block side by side, over |k| of the depth. The rows of A
// stay in the L1 cache, the panels in L2. |next_a| is NULL, or the next rows of A.
static void few_rows_(const T* a, int64_t a_row, int64_t a_column, const T* panels, int64_t step,
                      T* c, int64_t c_row, int64_t m, int64_t n, int64_t k, bool add,
                      const T* next_a) {
  int64_t strips = (n + STRIP - 1) / STRIP;
  next_t next = {.a = next_a ? next_a : a, .a_lines = next_a ? (k / LINE + strips) / strips : 0};
  for (int64_t j = 0; j < n; j += STRIP, panels += step, next.a += next.a_lines * LINE) {
    next.c = n - j > STRIP ? c + j + STRIP : c + TILE_ROWS * c_row;
    // Most of a large GEMM runs here: constant strides save instructions.
    if (UNROLLS && m == TILE_ROWS && n - j >= STRIP && a_column == 1)
      tile_(TILE_ROWS, TILE_REGISTERS, false, false, a, a_row, 1, panels, STRIP, c + j, c_row, k,
            add, MASK(1), NULL, &next, NULL);
    else
      strip_any_(n - j < STRIP ? n - j : STRIP, a, a_row, a_column, panels, STRIP, c + j, c_row, m,
                 k, add, &next);
  }
}

// Whether consecutive elements of A are close enough together to be read unpacked.
INLINE bool reads_a_in_place_(const rn_gemm_part_t* g) {
  return g->a_column * (int64_t)sizeof(T) <= NEAR_BYTES;
}

// Multiplies the first rows of A by unpacked strips of B and packs those on the way, which hides
// memory latency behind the multiplications. Returns how many rows of |n| columns that covered.
static int64_t packing_rows_(const rn_gemm_part_t* g, const T* a, const T* b, T* c, int64_t n,
                             int64_t k, bool add, T* panels) {
  bool is_plain = g->b_column == 1 && g->m >= TILE_ROWS && reads_a_in_place_(g);
  for (int64_t j = 0; j < n; j += STRIP, panels += k * STRIP) {
    const T* from = b + j * g->b_column;
    if (is_plain && n - j >= STRIP) {
      tile_(TILE_ROWS, TILE_REGISTERS, false, true, a, g->a_row, g->a_column, from, g->b_row, c + j,
            g->c_row, k, add, MASK(1), panels, NULL, NULL);
      continue;
    }
    pack_strip_(from, g->b_row, g->b_column, k, n - j < STRIP ? n - j : STRIP, panels);
    if (is_plain)
      strip_any_(n - j, a, g->a_row, g->a_column, panels, STRIP, c + j, g->c_row, TILE_ROWS, k, add,
                 NULL);
  }
  return is_plain ? TILE_ROWS : 0;
}

// Columns [j, j + n) of C, over |k| of the depth.
static void block_(const rn_gemm_part_t* g, int64_t j, int64_t n, int64_t p, int64_t k) {
  const T *a = (const T*)g->a + p * g->a_column, *panels = g->scratch;
  T* c = (T*)g->c + j;
  int64_t step = k * STRIP, i = 0;
  bool adds = p > 0 || g->adds;
  if (g->panels) {
    step = g->k * STRIP;
    panels = (const T*)g->panels + j / STRIP * step + p * STRIP;
  } else {
    const T* b = (const T*)g->b + p * g->b_row + j * g->b_column;
    i = packing_rows_(g, a, b, c, n, k, adds, g->scratch);
  }
  if (reads_a_in_place_(g)) {
    for (int64_t m; i < g->m; i += m) {
      m = g->m - i >= 2 * TILE_ROWS ? TILE_ROWS : g->m - i;
      few_rows_(a + i * g->a_row, g->a_row, g->a_column, panels, step, c + i * g->c_row, g->c_row,
                m, n, k, adds, g->a_column == 1 ? a + (i + m) * g->a_row : NULL);
    }
    return;
  }
  T* left = (T*)g->scratch + STRIPS * STRIP * BLOCK_DEPTH;
  for (; i < g->m; i += BLOCK_ROWS) {
    int64_t rows = g->m - i < BLOCK_ROWS ? g->m - i : BLOCK_ROWS;
    pack_rows_(a + i, g->a_column, rows, k, left);
    for (int64_t r = 0; r < rows; r += TILE_ROWS)
      few_rows_(left + r * k, 1, TILE_ROWS, panels, step, c + (i + r) * g->c_row, g->c_row,
                rows - r < TILE_ROWS ? rows - r : TILE_ROWS, n, k, adds, NULL);
  }
}

// The depth of all blocks but the last: equal ones. Without packing, A is read far along its rows.
static int64_t depth_(const rn_gemm_part_t* g) {
  int64_t most = g->turns                    ? 8 * BLOCK_DEPTH
                 : sizeof(T) > sizeof(float) ? BLOCK_DEPTH * 2 / 3
                                             : BLOCK_DEPTH;
  int64_t blocks = (g->k + most - 1) / most;
  return (g->k + blocks - 1) / blocks;
}

#ifdef HAS_LOW
// All rows times |k| steps of a strip, which stay in the L1 cache; prefetches |next|, the steps
// after those.
static void low_chunk_(const T* a, int64_t a_row, const T* panel, T* sums, int64_t m, int64_t k,
                       bool add, const T* next) {
  int64_t i = 0;
#define TILE(rows)                                                                 \
  tile_(rows, TILE_REGISTERS, false, false, a + i * a_row, a_row, 1, panel, STRIP, \
        sums + i * STRIP, STRIP, k, add, MASK(1), NULL, NULL, next),               \
      next += k * LINE, i += rows
  for (; i + TILE_ROWS <= m && (TILE_ROWS == 4 || m - i != 8);) TILE(TILE_ROWS);
#if TILE_ROWS != 4
  for (; i + 4 <= m;) TILE(4);
#endif
#undef TILE
  if (i < m)
    whole_strip_(a + i * a_row, a_row, 1, panel, STRIP, sums + i * STRIP, STRIP, m - i, k, add,
                 NULL);
}

// A few rows times panels: whole strips one after the other, so that the panels are read once.
// Returns how many columns that covered.
static int64_t low_strips_(const rn_gemm_part_t* g) {
  enum { depth = LOW_BYTES / (STRIP * sizeof(T)) };
  T* sums = g->scratch;
  const T* panel = g->panels;
  int64_t j = 0;
  for (; j + STRIP <= g->n; j += STRIP, panel += g->k * STRIP) {
    T* c = (T*)g->c + j;
    for (int64_t i = 0; g->adds && i < g->m; ++i)
      memcpy(sums + i * STRIP, c + i * g->c_row, STRIP * sizeof(T));
    for (int64_t p = 0; p < g->k; p += depth) {
      int64_t k = g->k - p < depth ? g->k - p : depth;
      low_chunk_((const T*)g->a + p, g->a_row, panel + p * STRIP, sums, g->m, k, p > 0 || g->adds,
                 panel + (p + k) * STRIP);
    }
    if (g->bias) add_bias_(sums, STRIP, (const T*)g->bias + j, c, g->c_row, g->m, STRIP);
    for (int64_t i = 0; !g->bias && i < g->m; ++i)
      memcpy(c + i * g->c_row, sums + i * STRIP, STRIP * sizeof(T));
  }
  return j;
}
#endif

static void blocks_(const rn_gemm_part_t* g) {
  int64_t depth = depth_(g), done = 0;
#ifdef HAS_LOW
  if (g->panels && g->a_column == 1 && g->m <= LOW_ROWS && !g->turns) done = low_strips_(g);
#endif
  for (int64_t j = done; j < g->n; j += STRIPS * STRIP) {
    int64_t n = g->n - j < STRIPS * STRIP ? g->n - j : STRIPS * STRIP;
    for (int64_t p = 0; p < g->k; p += depth)
      block_(g, j, n, p, g->k - p < depth ? g->k - p : depth);
  }
  T* c = (T*)g->c + done;
  if (g->bias) add_bias_(c, g->c_row, (const T*)g->bias + done, c, g->c_row, g->m, g->n - done);
}

// Computes the product in the scratch buffer and then writes it transposed.
static void turned_blocks_(const rn_gemm_part_t* g) {
  rn_gemm_part_t part = *g;
  part.c = g->scratch;
  part.c_row = g->n;
  blocks_(&part);
  const T* from = g->scratch;
  T* to = g->c;
  int64_t i = 0;
#ifdef TURN
  for (; i + W <= g->m; i += W) {
    int64_t j = 0;
    for (; j + W <= g->n; j += W) TURN(from + i * g->n + j, g->n, to + j * g->c_row + i, g->c_row);
    for (; j < g->n; ++j)
      for (int64_t r = i; r < i + W; ++r) to[j * g->c_row + r] = from[r * g->n + j];
  }
#endif
  for (; i < g->m; ++i)
    for (int64_t j = 0; j < g->n; ++j) to[j * g->c_row + i] = from[i * g->n + j];
}

static void gemm_(const rn_gemm_part_t* g) {
  switch (g->way) {
    case RN_GEMM_ROW:
      if (g->panels)
        panel_row_(g);
      else
        row_(g);
      break;
    case RN_GEMM_DOTS:
      dots_(g);
      break;
    case RN_GEMM_IN_PLACE:
      in_place_(g);
      break;
    default:
      if (g->turns)
        turned_blocks_(g);
      else
        blocks_(g);
      break;
  }
}

#undef next_t
#undef fetch_row_
#undef step_
#undef tile_
#undef strip_
#undef whole_strip_
#undef strip_any_
#undef row_of_
#undef rows_at_a_time_
#undef row_
#undef panel_sums_
#undef panel_row_
#undef dot_
#undef dots_
#undef pack_strip_
#undef pack_
#undef pack_rows_
#undef in_place_
#undef few_rows_
#undef reads_a_in_place_
#undef packing_rows_
#undef block_
#undef depth_
#undef add_bias_
#undef low_chunk_
#undef low_strips_
#undef blocks_
#undef turned_blocks_
#undef gemm_
#undef STRIP
#undef STRIPS
#undef LINE
#undef TURN
#undef HAS_LOW
#undef T
#undef V
#undef M
#undef W
#undef NAME
#undef LOAD
#undef STORE
#undef SET1
#undef FMA
#undef LOAD_M
#undef STORE_M
#undef MASK
