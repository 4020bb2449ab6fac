// Included by fake_cuda.c. What a stream does: memory, copies, kernels and matrix products, done at once, in memory of the host; or noted, while a graph
// is captured, and done in each launch of it. Stricter than a driver: while a graph is captured nothing may wait or be copied
// between host and device. Our own kernels are those that the tests compile for the host; candle's few are below.
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Graph Graph;

// In front of all memory of the device.
typedef struct { uint64_t bytes, is_free; Graph *owner; uint64_t unused; } Header;

typedef void (*Candle)(void **arguments);
typedef struct { const char *name; Candle run; int count; const char *sizes; } Known;
typedef struct { const Known *candle; void (*body)(const void *); unsigned bytes; } Function;

typedef struct { int m, n, k, transposed[2], ld[3], batches; long long stride[3]; const float *a, *b; float *c; float alpha, beta; } Product;

enum Kind { ALLOCATE, FREE, COPY, SET, KERNEL, PRODUCT };
typedef struct {
    enum Kind kind;
    char *to;
    const char *from;
    size_t bytes;
    unsigned char value;
    const Function *function;
    unsigned blocks[2], threads[2];
    char *arguments;
    Product product;
} Node;

struct Graph { Node *nodes; size_t count, live; int launches; };

static Graph *capture;
static int is_invalid;
static uint64_t graph_used;

static int refuse_in_capture(void) {
    if (capture) is_invalid = 1;
    return capture ? CAPTURE_UNSUPPORTED : SUCCESS;
}

// Memory: NaN in every number of it, before it is written and after it is freed.
static uint64_t new_memory(size_t bytes, Graph *owner) {
    Header *header = malloc(sizeof(Header) + bytes);
    if (!header) abort();
    *header = (Header){bytes, 0, owner, 0};
    memset(header + 1, 0xff, bytes);
    return (uint64_t)(header + 1);
}

static Header *header_of(uint64_t address) { return (Header *)address - 1; }

static void product(const Product *p) {
    for (int batch = 0; batch < p->batches; ++batch) {
        const float *a = p->a + batch * p->stride[0], *b = p->b + batch * p->stride[1];
        float *c = p->c + batch * p->stride[2];
        for (int row = 0; row < p->m; ++row)
            for (int column = 0; column < p->n; ++column) {
                float sum = 0;
                for (int i = 0; i < p->k; ++i)
                    sum += a[p->transposed[0] ? row * p->ld[0] + i : i * p->ld[0] + row] *
                           b[p->transposed[1] ? i * p->ld[1] + column : column * p->ld[1] + i];
                float *to = c + column * p->ld[2] + row;
                *to = p->alpha * sum + (p->beta != 0 ? p->beta * *to : 0);
            }
    }
}

static void *kernels(void) {
    static void *library;
    const char *path = getenv("GNNTOP_EMULATED_KERNELS");
    if (!library && path) library = dlopen(path, RTLD_NOW);
    return library;
}

static void run(const Node *node) {
    switch (node->kind) {
    case ALLOCATE: memset(node->to, 0xff, node->bytes); return;
    case FREE: memset(node->to, 0xff, node->bytes); return;
    case COPY: memmove(node->to, node->from, node->bytes); return;
    case SET: memset(node->to, node->value, node->bytes); return;
    case PRODUCT: product(&node->product); return;
    case KERNEL: break;
    }
    const Function *function = node->function;
    if (function->candle) {
        void *arguments[16];
        size_t offset = 0;
        for (int i = 0; i < function->candle->count; ++i, offset += 8) arguments[i] = node->arguments + offset;
        function->candle->run(arguments);
        return;
    }
    void (*emulate)(void (*)(const void *), const unsigned *, const unsigned *, const void *) = dlsym(kernels(), "emulate");
    emulate(function->body, node->blocks, node->threads, node->arguments);
}

// Notes a piece of work, or does it.
static int submit(Node node) {
    if (!capture) {
        run(&node);
        free(node.arguments);
        return SUCCESS;
    }
    if (is_invalid) return CAPTURE_INVALIDATED;
    capture->nodes = realloc(capture->nodes, (capture->count + 1) * sizeof(Node));
    capture->nodes[capture->count++] = node;
    return SUCCESS;
}

int cuMemAllocAsync(uint64_t *address, size_t bytes, void *stream) {
    if (capture) {
        *address = new_memory(bytes, capture);
        capture->live += 1;
        return submit((Node){.kind = ALLOCATE, .to = (char *)*address, .bytes = bytes});
    }
    int status = pool_take(bytes);
    if (status == SUCCESS) *address = new_memory(bytes, NULL);
    return status;
}

// Memory of a graph is freed within it, other memory outside.
int cuMemFreeAsync(uint64_t address, void *stream) {
    Header *header = header_of(address);
    if (header->owner != capture || header->is_free) {
        fprintf(stderr, "%zu bytes were freed where they must not be\n", (size_t)header->bytes);
        is_invalid = 1;
        return INVALID;
    }
    header->is_free = 1;
    if (capture) {
        capture->live -= 1;
        return submit((Node){.kind = FREE, .to = (char *)address, .bytes = header->bytes});
    }
    pool_give(header->bytes);
    memset((void *)address, 0xff, header->bytes);
    free(header);
    return SUCCESS;
}

int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream) {
    if (refuse_in_capture()) return CAPTURE_UNSUPPORTED;
    memcpy((void *)to, from, bytes);
    return SUCCESS;
}

int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream) {
    if (refuse_in_capture()) return CAPTURE_UNSUPPORTED;
    memcpy(to, (void *)from, bytes);
    return SUCCESS;
}

int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *stream) {
    return submit((Node){.kind = COPY, .to = (char *)to, .from = (char *)from, .bytes = bytes});
}

int cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, void *stream) {
    return submit((Node){.kind = SET, .to = (char *)to, .value = value, .bytes = bytes});
}

// Candle's kernels, for contiguous results.
static size_t strided(size_t index, size_t rank, const size_t *dims, const size_t *strides) {
    size_t at = 0;
    for (size_t d = rank; d-- > 0; index /= dims[d]) at += index % dims[d] * strides[d];
    return at;
}

#define ARGUMENT(type, number) (*(type *)arguments[number])

static void const_set_f32(void **arguments) {
    size_t count = ARGUMENT(size_t, 0);
    if (ARGUMENT(size_t *, 2)) abort();
    for (size_t i = 0; i < count; ++i) ARGUMENT(float *, 4)[i] = ARGUMENT(float, 3);
}

static void ucopy_f32(void **arguments) {
    size_t count = ARGUMENT(size_t, 0), rank = ARGUMENT(size_t, 1), *dims = ARGUMENT(size_t *, 2);
    for (size_t i = 0; i < count; ++i)
        ARGUMENT(float *, 4)[i] = ARGUMENT(float *, 3)[dims ? strided(i, rank, dims, dims + rank) : i];
}

static void badd_f32(void **arguments) {
    size_t count = ARGUMENT(size_t, 0), rank = ARGUMENT(size_t, 1), *dims = ARGUMENT(size_t *, 2);
    for (size_t i = 0; i < count; ++i) {
        size_t left = dims ? strided(i, rank, dims, dims + rank) : i;
        size_t right = dims ? strided(i, rank, dims, dims + 2 * rank) : i;
        ARGUMENT(float *, 5)[i] = ARGUMENT(float *, 3)[left] + ARGUMENT(float *, 4)[right];
    }
}

static void cast_f64_f32(void **arguments) {
    size_t count = ARGUMENT(size_t, 0);
    if (ARGUMENT(size_t *, 2)) abort();
    for (size_t i = 0; i < count; ++i) ARGUMENT(float *, 4)[i] = (float)ARGUMENT(double *, 3)[i];
}

static void copy2d_f32(void **arguments) {
    uint32_t rows = ARGUMENT(uint32_t, 2), columns = ARGUMENT(uint32_t, 3);
    for (uint32_t row = 0; row < rows; ++row)
        for (uint32_t column = 0; column < columns; ++column)
            ARGUMENT(float *, 1)[row * ARGUMENT(uint32_t, 5) + column] = ARGUMENT(float *, 0)[row * ARGUMENT(uint32_t, 4) + column];
}

// Names, and the bytes of each argument.
static const Known KNOWN[] = {
    {"const_set_f32", const_set_f32, 5, "88848"},
    {"ucopy_f32", ucopy_f32, 5, "88888"},
    {"badd_f32", badd_f32, 6, "888888"},
    {"cast_f64_f32", cast_f64_f32, 5, "88888"},
    {"copy2d_f32", copy2d_f32, 6, "884444"},
};

int cuModuleLoadData(void **module, const void *image) {
    *module = (void *)image;
    return refuse_in_capture();
}

int cuModuleUnload(void *module) { return SUCCESS; }

int cuModuleGetFunction(Function **found, void *module, const char *name) {
    Function *function = calloc(1, sizeof(Function));
    *found = function;
    for (size_t i = 0; i < sizeof(KNOWN) / sizeof(KNOWN[0]); ++i)
        if (!strcmp(KNOWN[i].name, name)) function->candle = &KNOWN[i];
    char size[256];
    snprintf(size, sizeof size, "%s_bytes", name);
    if (!function->candle && kernels()) {
        function->body = (void (*)(const void *))dlsym(kernels(), name);
        const unsigned *bytes = dlsym(kernels(), size);
        function->bytes = bytes ? *bytes : 0;
    }
    if (function->candle || function->body) return SUCCESS;
    fprintf(stderr, "there is no kernel %s here\n", name);
    return NOT_FOUND;
}

int cuLaunchKernel(const Function *function, unsigned x, unsigned y, unsigned z, unsigned block_x, unsigned block_y, unsigned block_z,
                   unsigned shared, void *stream, void **parameters, void **extra) {
    Node node = {.kind = KERNEL, .function = function, .blocks = {x, y}, .threads = {block_x, block_y}};
    if (function->candle) {
        node.arguments = calloc(function->candle->count, 8);
        for (int i = 0; i < function->candle->count; ++i)
            memcpy(node.arguments + 8 * i, parameters[i], function->candle->sizes[i] - '0');
    } else {
        node.arguments = malloc(function->bytes);
        memcpy(node.arguments, parameters[0], function->bytes);
    }
    return submit(node);
}

int cuStreamBeginCapture_v2(void *stream, int mode) {
    if (capture) return INVALID;
    capture = calloc(1, sizeof(Graph));
    is_invalid = getenv("GNNTOP_NO_GRAPHS") != NULL;
    return SUCCESS;
}

int cuStreamIsCapturing(void *stream, int *status) {
    *status = !capture ? 0 : is_invalid ? 2 : 1;
    return SUCCESS;
}

int cuStreamEndCapture(void *stream, Graph **graph) {
    *graph = is_invalid ? NULL : capture;
    capture = NULL;
    return is_invalid ? CAPTURE_INVALIDATED : SUCCESS;
}

int cuGraphInstantiateWithFlags(Graph **launched, Graph *graph, unsigned long long flags) {
    *launched = graph;
    return SUCCESS;
}

int cuGraphLaunch(Graph *graph, void *stream) {
    if (capture) return refuse_in_capture();
    if (graph->live && graph->launches) return INVALID;
    for (size_t i = 0; i < graph->count; ++i) run(&graph->nodes[i]);
    graph->launches += 1;
    graph_used = 1 << 20;
    return SUCCESS;
}

int cuGraphExecDestroy(Graph *graph) { return SUCCESS; }
int cuGraphDestroy(Graph *graph) { return SUCCESS; }

int cuDeviceGetGraphMemAttribute(int device, int attribute, uint64_t *value) {
    *value = graph_used;
    return SUCCESS;
}

int cuDeviceSetGraphMemAttribute(int device, int attribute, uint64_t *value) { return *value ? INVALID : SUCCESS; }

// cuBLAS and cuRAND.
int cublasCreate_v2(void **handle) { *handle = &capture; return SUCCESS; }
int cublasDestroy_v2(void *handle) { return SUCCESS; }
int cublasSetStream_v2(void *handle, void *stream) { return SUCCESS; }

int cublasGemmStridedBatchedEx(void *handle, int a_transposed, int b_transposed, int m, int n, int k, const float *alpha, const float *a,
                               int a_type, int lda, long long a_stride, const float *b, int b_type, int ldb, long long b_stride,
                               const float *beta, float *c, int c_type, int ldc, long long c_stride, int batches, int compute,
                               int algorithm) {
    Product product = {m, n, k, {a_transposed, b_transposed}, {lda, ldb, ldc}, batches, {a_stride, b_stride, c_stride}, a, b, c, *alpha, *beta};
    return submit((Node){.kind = PRODUCT, .product = product});
}

int curandCreateGenerator(void **generator, int type) { *generator = &capture; return SUCCESS; }
int curandDestroyGenerator(void *generator) { return SUCCESS; }
int curandSetPseudoRandomGeneratorSeed(void *generator, unsigned long long seed) { return SUCCESS; }
int curandSetGeneratorOffset(void *generator, unsigned long long offset) { return SUCCESS; }
int curandSetStream(void *generator, void *stream) { return SUCCESS; }
