// Nodes that are computed over their edges, and how those with very many edges are divided.
#pragma once
#include "kernel.cuh"

// The nodes to compute and their edges. A node with `hub_edges` edges or more is computed in parts, each as if it were a
// node; their results are joined in their order by a second kernel.
struct Work {
    const u32* start;
    // The node, first and last edge of each part.
    const u32* part_node;
    const u32* part_begin;
    const u32* part_end;
    u32 nodes;
    u32 parts;
    u32 hub_edges;
    u32 unused;
};

struct Piece {
    u64 node;
    u32 begin;
    u32 end;
    bool is_part;
    bool is_any;
};

// Node or part `item`.
__device__ inline Piece piece_of(const Work& w, u64 item) {
    if (item < w.nodes) {
        u32 begin = w.start[item], end = w.start[item + 1];
        return {item, begin, end, false, end - begin < w.hub_edges};
    }
    u64 part = item - w.nodes;
    if (part >= w.parts) return {0, 0, 0, true, false};
    return {w.part_node[part], w.part_begin[part], w.part_end[part], true, true};
}

// The node of each hub, and where its parts start, `[hubs + 1]`.
struct HubList {
    const u32* node;
    const u32* part;
    u64 count;
};
