// Rows of a table, copied together: the features of the nodes of a batch, where the table is on the device.
#include "kernel.cuh"

struct GatherArguments {
    // `[any, width]`, and which rows of it, `[count]`.
    const void* table;
    const u32* row;
    // `[count, width]`
    void* out;
    u64 count;
    u64 width;
    // Of the table.
    u64 rows;
};

// A row of threads takes a row, each thread some columns. A row that the table has not is not a number.
template <class T, int N> __device__ inline void gather_rows(const GatherArguments& a) {
    u64 item = u64(blockIdx.x) * blockDim.y + threadIdx.y;
    if (item >= a.count) return;
    u64 row = a.row[item];
    Pack<T, N> none;
    for (int i = 0; i < N; ++i) none.v[i] = narrow<T>(Wide<T>(NAN));
    u64 column = (u64(blockIdx.y) * blockDim.x + threadIdx.x) * N;
    for (; column < a.width; column += u64(gridDim.y) * blockDim.x * N) {
        Pack<T, N> found = row < a.rows ? load<N, T>(a.table, row * a.width + column) : none;
        store<N, T>(a.out, item * a.width + column, found);
    }
}

#define GATHER_KERNELS(T, type)                                                                                        \
    KERNEL(gather_rows_1_##type, GatherArguments, (gather_rows<T, 1>(a)))                                              \
    KERNEL(gather_rows_2_##type, GatherArguments, (gather_rows<T, 2>(a)))                                              \
    KERNEL(gather_rows_4_##type, GatherArguments, (gather_rows<T, 4>(a)))
FOR_TYPES(GATHER_KERNELS)
