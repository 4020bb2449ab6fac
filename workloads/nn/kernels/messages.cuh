// Messages along edges, as workloads/nn/src/kernels/message has them: `op` of two rows, computed where they are needed.
#pragma once
#include "kernel.cuh"

// Where an operand's row is found, seen from a position in a node's list of edges.
enum At : u32 { AT_NODE = 0, IN_LIST = 1, AT_POSITION = 2 };

struct Rows {
    const void* data;
    const u32* list;
    u32 at;
    u32 unused;

    __device__ inline u64 row(u64 node, u64 position) const {
        return at == AT_NODE ? node : at == IN_LIST ? list[position] : position;
    }
};

enum Op : u32 { COPY_LHS = 0, COPY_RHS = 1, ADD = 2, SUB = 3, MUL = 4, DIV = 5, DOT = 6 };

struct Messages {
    Rows lhs;
    Rows rhs;
    // A factor of each message, in the wide type; none where it has no data.
    Rows scale;
    // Where there are any, `lhs` has rows of the targets, and a message counts only in the columns in which its edge
    // holds the target's extremum: the gradient of a maximum.
    const u32* holders;
    // Number of the edge at each position; the position itself where there is no list.
    const u32* edge;
    u32 op;
    // Whether `rhs` has one value for each head.
    u32 per_head;
    u32 heads;
    u32 width;
};

// How much is known of the messages when a kernel is compiled: rows as they are, times a factor; rows times one value of
// `rhs` for each head; anything.
enum Kind { COPY, SCALED, GENERAL };

template <class T> __device__ inline Wide<T> combine(u32 op, Wide<T> left, Wide<T> right) {
    switch (op) {
        case COPY_RHS: return right;
        case ADD: return left + right;
        case SUB: return left - right;
        case MUL: case DOT: return left * right;
        case DIV: return left / right;
        default: return left;
    }
}

template <class T> __device__ inline Wide<T> factor(const Messages& m, u64 node, u64 position) {
    return m.scale.data ? static_cast<const Wide<T>*>(m.scale.data)[m.scale.row(node, position)] : Wide<T>(1);
}

template <class T> __device__ inline bool is_held(const Messages& m, u64 left_element, u64 position) {
    return !m.holders || m.holders[left_element] == (m.edge ? m.edge[position] : u32(position));
}

// One column of a message, whatever its operator; without its factor.
template <class T> __device__ inline Wide<T> value(const Messages& m, u64 node, u64 position, u32 column) {
    u64 total = u64(m.heads) * m.width;
    u64 left = m.lhs.row(node, position) * total + column;
    if (!is_held<T>(m, left, position)) return 0;
    Wide<T> l = m.op == COPY_RHS ? Wide<T>(0) : at<T>(m.lhs.data, left);
    if (m.op == COPY_LHS) return l;
    u64 row = m.rhs.row(node, position);
    return combine<T>(m.op, l, at<T>(m.rhs.data, m.per_head ? row * m.heads + column / m.width : row * total + column));
}

// `N` columns from `column` on, which lie in one head.
template <class T, Kind KIND, int N>
__device__ inline void values(const Messages& m, u64 node, u64 position, u32 column, Wide<T> (&out)[N]) {
    Wide<T> times = factor<T>(m, node, position);
    if (KIND == GENERAL) {
        for (int i = 0; i < N; ++i) out[i] = value<T>(m, node, position, column + i) * times;
        return;
    }
    if (KIND == SCALED) times *= at<T>(m.rhs.data, m.rhs.row(node, position) * m.heads + column / m.width);
    Pack<T, N> row = load<N, T>(m.lhs.data, m.lhs.row(node, position) * (u64(m.heads) * m.width) + column);
    for (int i = 0; i < N; ++i) out[i] = widen(row.v[i]) * times;
}
