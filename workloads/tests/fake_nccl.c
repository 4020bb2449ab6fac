// As much of libnccl.so.2 as the tests of ranks need: it joins memory of the host, between threads of one process. A call comes
// back at once and is under way until all ranks have made it; the last one does the work for all. What NCCL leaves to luck,
// ranks that make different calls or one that is used after its end, is told here.
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, CUDA_ERROR = 1, INVALID_ARGUMENT = 4, INVALID_USAGE = 5, REMOTE_ERROR = 6, IN_PROGRESS = 7 };
enum { FLOAT32 = 7, AVERAGE = 4 };
enum { MOST_RANKS = 16, MOST_GROUPS = 64, LOG = 4096 };

typedef struct { char bytes[128]; } Id;
typedef struct { size_t size; unsigned magic, version; int blocking; } Config;

typedef struct Comm Comm;
typedef struct { Id id; int ranks; Comm *members[MOST_RANKS]; } Group;
struct Comm {
    Group *group;
    int rank, state, is_over, is_broken;
    const char *call; // Under way: of `count` values at `values`, from `root`.
    float *values;
    size_t count;
    int root;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Group groups[MOST_GROUPS];
static int ids, misuses, fail_rank = -1;
static char logs[MOST_RANKS][LOG], fail_call[32], last_error[128];

// For the tests: what a rank has called, how often a communicator was used after its end, and what is to fail.
const char *fake_log(int rank) { return logs[rank]; }
int fake_misuses(void) { return misuses; }
void fake_fail(int rank, const char *call) {
    fail_rank = rank;
    snprintf(fail_call, sizeof fail_call, "%s", call);
}

int fake_has_called(int rank, const char *call) {
    pthread_mutex_lock(&lock);
    int has = strstr(logs[rank], call) != NULL;
    pthread_mutex_unlock(&lock);
    return has;
}
// The way from this rank of the first group is lost, as NCCL notices by itself.
void fake_break(int rank) {
    pthread_mutex_lock(&lock);
    groups[0].members[rank]->is_broken = 1;
    pthread_mutex_unlock(&lock);
}

static int write_down(int rank, const char *call, const char *more) {
    size_t used = strlen(logs[rank]);
    snprintf(logs[rank] + used, LOG - used, "%s%s\n", call, more);
    if (rank != fail_rank || strcmp(call, fail_call)) return SUCCESS;
    fail_rank = -1;
    snprintf(last_error, sizeof last_error, "Cuda failure 2\n  'out of memory'");
    return CUDA_ERROR;
}

static int is_usable(Comm *comm) {
    if (comm && !comm->is_over) return 1;
    misuses++;
    return 0;
}

// Does what all members of a group have called, or says that they have called different things.
static void do_it(Group *group) {
    Comm *first = group->members[0];
    for (int rank = 0; rank < group->ranks; rank++)
        if (!group->members[rank] || !group->members[rank]->call) return;
    int state = SUCCESS;
    for (int rank = 1; rank < group->ranks; rank++) {
        Comm *other = group->members[rank];
        if (strcmp(other->call, first->call) || other->count != first->count || other->root != first->root) state = INVALID_USAGE;
    }
    for (size_t at = 0; state == SUCCESS && at < first->count; at++) {
        float result = 0;
        if (first->root >= 0) result = group->members[first->root]->values[at];
        else for (int rank = 0; rank < group->ranks; rank++) result += group->members[rank]->values[at] / (float)group->ranks;
        for (int rank = 0; rank < group->ranks; rank++) group->members[rank]->values[at] = result;
    }
    for (int rank = 0; rank < group->ranks; rank++) {
        group->members[rank]->call = NULL;
        group->members[rank]->state = state;
    }
}

static int begin(Comm *comm, const char *call, float *values, size_t count, int root) {
    char more[64] = "";
    if (values) snprintf(more, sizeof more, root < 0 ? " of %zu" : " of %zu from %d", count, root);
    if (comm->call) misuses++;
    int failed = write_down(comm->rank, call, more);
    if (failed) return failed;
    comm->call = call;
    comm->values = values;
    comm->count = count;
    comm->root = root;
    comm->state = IN_PROGRESS;
    do_it(comm->group);
    return IN_PROGRESS;
}

int ncclGetUniqueId(Id *id) {
    pthread_mutex_lock(&lock);
    memset(id, 0, sizeof *id);
    // Bytes of all kinds have to arrive.
    for (int at = 0; at < 128; at++) id->bytes[at] = (char)(at * 5 + ids);
    ids++;
    int failed = write_down(0, "id", "");
    pthread_mutex_unlock(&lock);
    return failed;
}

int ncclCommInitRankConfig(Comm **comm, int ranks, Id id, int rank, Config *config) {
    if (config->size != sizeof *config || config->magic != 0xcafebeef || config->version != 21400 || config->blocking)
        return INVALID_ARGUMENT;
    pthread_mutex_lock(&lock);
    int at = 0;
    while (groups[at].ranks && memcmp(&groups[at].id, &id, sizeof id)) at++;
    Group *group = &groups[at];
    int result = INVALID_ARGUMENT;
    if (at < MOST_GROUPS && rank >= 0 && rank < ranks && ranks <= MOST_RANKS && !group->members[rank]) {
        group->id = id;
        group->ranks = ranks;
        *comm = group->members[rank] = calloc(1, sizeof(Comm));
        (*comm)->group = group;
        (*comm)->rank = rank;
        result = begin(*comm, "join", NULL, 0, -1);
    }
    pthread_mutex_unlock(&lock);
    return result;
}

int ncclCommGetAsyncError(Comm *comm, int *state) {
    pthread_mutex_lock(&lock);
    if (is_usable(comm)) *state = comm->is_broken ? REMOTE_ERROR : comm->state;
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}

static int move(Comm *comm, const char *call, const float *from, float *to, size_t count, int type, int root) {
    pthread_mutex_lock(&lock);
    int result = INVALID_ARGUMENT;
    if (is_usable(comm) && from == to && type == FLOAT32) result = begin(comm, call, to, count, root);
    pthread_mutex_unlock(&lock);
    return result;
}

int ncclAllReduce(const float *from, float *to, size_t count, int type, int operation, Comm *comm, void *stream) {
    if (stream || operation != AVERAGE) return INVALID_ARGUMENT;
    return move(comm, "all-reduce", from, to, count, type, -1);
}

int ncclBroadcast(const float *from, float *to, size_t count, int type, int root, Comm *comm, void *stream) {
    return stream ? INVALID_ARGUMENT : move(comm, "broadcast", from, to, count, type, root);
}

int ncclCommFinalize(Comm *comm) {
    pthread_mutex_lock(&lock);
    int result = is_usable(comm) ? begin(comm, "finalize", NULL, 0, -1) : INVALID_ARGUMENT;
    pthread_mutex_unlock(&lock);
    return result;
}

static int end(Comm *comm, const char *call) {
    pthread_mutex_lock(&lock);
    if (is_usable(comm)) {
        write_down(comm->rank, call, "");
        comm->is_over = 1;
        comm->call = NULL;
    }
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}

int ncclCommDestroy(Comm *comm) { return end(comm, "destroy"); }
int ncclCommAbort(Comm *comm) { return end(comm, "abort"); }

const char *ncclGetErrorString(int result) {
    return result == CUDA_ERROR ? "unhandled cuda error" : result == INVALID_USAGE  ? "invalid usage"
        : result == REMOTE_ERROR ? "remote process exited or there was a network error" : "invalid argument";
}

const char *ncclGetLastError(Comm *comm) { return last_error; }
