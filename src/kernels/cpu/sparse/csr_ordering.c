// Approximate minimum degree (Amestoy, Davis and Duff, 1996), without supervariables.
//
// Eliminating a row of a symmetric matrix connects all of its neighbours with each other. Instead
// of these edges, the graph gets an *element*: the list of the neighbours. A row that is left has
// edges to other rows and belongs to elements; its degree, the number of neighbours, is estimated
// from above. The row with the least degree is eliminated next.
#include "kernels/cpu/sparse/csr_ordering.h"

enum { NONE = -1 };

typedef struct order_t {
  int32_t n;
  // Per row: its edges, of which the first |element_count| lead to elements and the others to rows.
  int32_t** edges;
  int32_t *edge_count, *element_count;
  // Per element, by the number of the row that became it: its rows; some may be eliminated.
  int32_t** members;
  int32_t* member_count;
  bool *is_gone, *is_absorbed;  // rows that are eliminated, elements that are part of another
  int32_t* mark;                // by row or element: a round's number, see below
  int32_t* outside;             // by element: members that are not in the new element
  int32_t *degree, *head, *next, *previous;  // lists of rows by degree
} order_t;

static void list_remove(order_t* o, int32_t i) {
  if (o->next[i] != NONE) o->previous[o->next[i]] = o->previous[i];
  if (o->previous[i] != NONE)
    o->next[o->previous[i]] = o->next[i];
  else
    o->head[o->degree[i]] = o->next[i];
}

static void list_add(order_t* o, int32_t i, int32_t degree) {
  o->degree[i] = degree;
  o->previous[i] = NONE;
  o->next[i] = o->head[degree];
  if (o->next[i] != NONE) o->previous[o->next[i]] = i;
  o->head[degree] = i;
}

static rn_status_t init(order_t* o, const rn_csr_matrix_t* m, rn_arena_t* arena) {
  const size_t n = (size_t)m->height;
  o->n = (int32_t)n;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, n, &o->edges));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, n, &o->members));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, n, &o->is_gone));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, n, &o->is_absorbed));
  int32_t** arrays[] = {&o->edge_count, &o->element_count, &o->member_count,
                        &o->mark,       &o->outside,       &o->degree,
                        &o->head,       &o->next,          &o->previous};
  for (size_t k = 0; k < sizeof arrays / sizeof *arrays; ++k)
    RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, n, arrays[k]));
  for (int64_t i = 0; i < m->height; ++i)
    for (int64_t k = m->rows[i]; k < m->rows[i + 1]; ++k)
      if (m->columns[k] < i) ++o->edge_count[i], ++o->edge_count[m->columns[k]];
  for (size_t i = 0; i < n; ++i) {
    RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)o->edge_count[i], &o->edges[i]));
    o->edge_count[i] = 0;
    o->head[i] = NONE;
  }
  for (int32_t i = 0; i < o->n; ++i)
    for (int64_t k = m->rows[i]; k < m->rows[i + 1]; ++k) {
      int32_t j = m->columns[k];
      if (j >= i) continue;
      o->edges[i][o->edge_count[i]++] = j;
      o->edges[j][o->edge_count[j]++] = i;
    }
  for (int32_t i = o->n - 1; i >= 0; --i)
    list_add(o, i, o->edge_count[i] < o->n ? o->edge_count[i] : o->n - 1);
  return RN_OK;
}

// Adds the rows of |list| that are left and not marked to the members of |p|.
static void add_members(order_t* o, int32_t p, const int32_t* list, int32_t count, int32_t round) {
  for (int32_t k = 0; k < count; ++k) {
    int32_t i = list[k];
    if (o->is_gone[i] || o->mark[i] == round) continue;
    o->mark[i] = round;
    o->members[p][o->member_count[p]++] = i;
  }
}

// Makes row |p| an element of all of its neighbours; marks them with |round|.
static rn_status_t make_element(order_t* o, int32_t p, int32_t round, rn_arena_t* arena) {
  int64_t most = o->edge_count[p] - o->element_count[p];
  for (int32_t k = 0; k < o->element_count[p]; ++k) most += o->member_count[o->edges[p][k]];
  if (most > o->n) most = o->n;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)most + 1, &o->members[p]));
  o->is_gone[p] = true;
  for (int32_t k = 0; k < o->element_count[p]; ++k) {
    int32_t e = o->edges[p][k];
    add_members(o, p, o->members[e], o->member_count[e], round);
    o->is_absorbed[e] = true;
  }
  add_members(o, p, o->edges[p] + o->element_count[p], o->edge_count[p] - o->element_count[p],
              round);
  return RN_OK;
}

// Removes the eliminated rows from an element; returns how many are left.
static int32_t drop_gone(order_t* o, int32_t e) {
  int32_t left = 0;
  for (int32_t y = 0; y < o->member_count[e]; ++y)
    if (!o->is_gone[o->members[e][y]]) o->members[e][left++] = o->members[e][y];
  o->member_count[e] = left;
  return left;
}

// For every element of a member of |p|: how many of its members are not members of |p|.
static void count_outside(order_t* o, int32_t p, int32_t round) {
  for (int32_t k = 0; k < o->member_count[p]; ++k) {
    int32_t i = o->members[p][k];
    for (int32_t x = 0; x < o->element_count[i]; ++x) {
      int32_t e = o->edges[i][x];
      if (o->is_absorbed[e]) continue;
      if (o->mark[e] != round) {
        o->mark[e] = round;
        o->outside[e] = drop_gone(o, e);
      }
      --o->outside[e];
    }
  }
}

// Drops from row |i|, a member of |p|, the edges that |p| replaces, and estimates its degree.
static void update_row(order_t* o, int32_t i, int32_t p, int32_t round) {
  int32_t *edges = o->edges[i], elements = 0, rows = 0;
  int64_t degree = o->member_count[p] - 1;
  for (int32_t x = 0; x < o->element_count[i]; ++x) {
    int32_t e = edges[x];
    if (o->is_absorbed[e]) continue;
    if (o->outside[e] <= 0) {
      o->is_absorbed[e] = true;
      continue;
    }
    degree += o->outside[e];
    edges[elements++] = e;
  }
  int32_t* others = edges + o->element_count[i];
  for (int32_t x = 0; x < o->edge_count[i] - o->element_count[i]; ++x) {
    int32_t j = others[x];
    if (!o->is_gone[j] && o->mark[j] != round) others[rows++] = j;
  }
  // There is room: the edge to |p|, or the element through which |p| was a neighbour, was dropped.
  memmove(edges + elements + 1, others, (size_t)rows * sizeof *edges);
  edges[elements++] = p;
  o->element_count[i] = elements;
  o->edge_count[i] = elements + rows;
  degree += rows;
  list_remove(o, i);
  list_add(o, i, degree < o->n ? (int32_t)degree : o->n - 1);
}

rn_status_t rn_csr_order(const rn_csr_matrix_t* m, rn_arena_t* arena, int32_t* order) {
  order_t o = {0};
  RN_RETURN_IF_ERROR(init(&o, m, arena));
  int32_t least = 0;
  for (int32_t done = 0; done < o.n; ++done) {
    while (o.head[least] == NONE) ++least;
    const int32_t p = o.head[least], round = done + 1;
    order[done] = p;
    list_remove(&o, p);
    RN_RETURN_IF_ERROR(make_element(&o, p, round, arena));
    count_outside(&o, p, round);
    for (int32_t k = 0; k < o.member_count[p]; ++k) {
      update_row(&o, o.members[p][k], p, round);
      if (o.degree[o.members[p][k]] < least) least = o.degree[o.members[p][k]];
    }
  }
  return RN_OK;
}
