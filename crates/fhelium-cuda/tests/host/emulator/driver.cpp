// A driver, libcuda.so.1, of one device that does not exist: memory is the host's, launches run at
// once, streams have one order. Enough of it for fhelium-cuda's tests to run its kernels, memory and
// graphs without a GPU.
//
// Fresh memory holds a pattern and ends in one, so that reads of what nobody wrote give wrong
// residues and writes behind a buffer are found when it is freed.

#include "device.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <ucontext.h>
#include <csetjmp>

Index threadIdx, blockIdx, gridDim;
unsigned fh_lanes[1024];

// ------------------------------------------------------------------------------- blocks

namespace {

constexpr size_t STACK_BYTES = 128 << 10;
constexpr size_t GUARD_WORDS = 16;
constexpr uint64_t PATTERN = 0xA5A5A5A5A5A5A5A5ull;

struct Fiber {
    std::vector<char> stack = std::vector<char>(STACK_BYTES);
    ucontext_t start;
    jmp_buf at;
    bool started, done;
};

std::vector<Fiber*> fibers;
Fiber* current;
jmp_buf scheduler;
ucontext_t scheduler_context;
const Kernel* running;
const void* running_arguments;
std::vector<uint64_t> shared_memory;

void fiber_main() {
    running->run(running_arguments);
    current->done = true;
    _longjmp(scheduler, 1);
}

void resume(Fiber* fiber) {
    current = fiber;
    if (_setjmp(scheduler) != 0) return;
    if (fiber->started) _longjmp(fiber->at, 1);
    fiber->started = true;
    getcontext(&fiber->start);
    fiber->start.uc_stack.ss_sp = fiber->stack.data();
    fiber->start.uc_stack.ss_size = fiber->stack.size();
    fiber->start.uc_link = nullptr;
    makecontext(&fiber->start, fiber_main, 0);
    setcontext(&fiber->start);
}

void run_block(unsigned threads) {
    while (fibers.size() < threads) fibers.push_back(new Fiber);
    for (unsigned t = 0; t < threads; ++t) fibers[t]->started = fibers[t]->done = false;
    for (;;) {
        unsigned done = 0;
        for (unsigned t = 0; t < threads; ++t) {
            threadIdx = Index{t, 0, 0};
            if (!fibers[t]->done) resume(fibers[t]);
            done += fibers[t]->done;
        }
        if (done == threads) return;
        if (done != 0) {
            fprintf(stderr, "%s: %u of %u threads left before a barrier\n", running->name, done, threads);
            abort();
        }
    }
}

std::map<std::string, Kernel>& kernels() {
    static std::map<std::string, Kernel> all;
    return all;
}

}  // namespace

void fh_barrier() {
    const Index index = threadIdx;
    if (_setjmp(current->at) == 0) _longjmp(scheduler, 1);
    threadIdx = index;
}

uint64_t* fh_shared_memory() { return shared_memory.data(); }

void fh_register(const Kernel& kernel) { kernels()[kernel.name] = kernel; }

// ------------------------------------------------------------------------------- memory

namespace {

enum { SUCCESS = 0, INVALID = 1, OUT_OF_MEMORY = 2, NOT_FOUND = 500 };
constexpr size_t TOTAL_BYTES = size_t(2) << 30;
std::map<uint64_t, size_t> allocations;  // address to words
size_t used_bytes;

int allocate(uint64_t* pointer, size_t bytes) {
    if (bytes == 0) return INVALID;
    if (used_bytes + bytes > TOTAL_BYTES) return OUT_OF_MEMORY;
    size_t words = (bytes + 7) / 8;
    uint64_t* memory = static_cast<uint64_t*>(aligned_alloc(256, (words + GUARD_WORDS) * 8 / 256 * 256 + 256));
    for (size_t i = 0; i < words + GUARD_WORDS; ++i) memory[i] = PATTERN;
    *pointer = reinterpret_cast<uint64_t>(memory);
    allocations[*pointer] = words;
    used_bytes += words * 8;
    return SUCCESS;
}

int release(uint64_t pointer) {
    auto found = allocations.find(pointer);
    if (found == allocations.end()) return INVALID;
    uint64_t* memory = reinterpret_cast<uint64_t*>(pointer);
    for (size_t i = 0; i < GUARD_WORDS; ++i)
        if (memory[found->second + i] != PATTERN) {
            fprintf(stderr, "something wrote behind a buffer of %zu words\n", found->second);
            abort();
        }
    used_bytes -= found->second * 8;
    allocations.erase(found);
    free(memory);
    return SUCCESS;
}

// ----------------------------------------------------------------------- graphs, launches

struct Node {
    const Kernel* kernel;  // null for a copy
    Index grid;
    unsigned threads;
    size_t shared;
    std::vector<char> arguments;
    uint64_t target, source;
    size_t bytes;
};
// What a graph keeps until the last copy of it is gone.
struct Object {
    void* kept;
    void (*release)(void*);
};
struct Graph {
    std::vector<Node> nodes;
    std::vector<std::shared_ptr<Object>> kept;
};
std::map<void*, Graph*> captures;
// A moment of the host's clock, as launches run at once.
struct Event {
    std::chrono::steady_clock::time_point at;
};

void run(const Node& node) {
    if (node.kernel == nullptr) {
        memcpy(reinterpret_cast<void*>(node.target), reinterpret_cast<void*>(node.source), node.bytes);
        return;
    }
    running = node.kernel;
    running_arguments = node.arguments.data();
    gridDim = node.grid;
    for (unsigned z = 0; z < node.grid.z; ++z)
        for (unsigned y = 0; y < node.grid.y; ++y)
            for (unsigned x = 0; x < node.grid.x; ++x) {
                blockIdx = Index{x, y, z};
                shared_memory.assign(node.shared / 8 + 2, PATTERN);
                run_block(node.threads);
                if (shared_memory.back() != PATTERN || shared_memory[node.shared / 8] != PATTERN) {
                    fprintf(stderr, "%s wrote behind its shared memory\n", running->name);
                    abort();
                }
            }
}

Node launch_node(const Kernel* kernel, Index grid, unsigned threads, size_t shared,
                 void** parameters) {
    Node node = {};
    node.kernel = kernel, node.grid = grid, node.threads = threads, node.shared = shared;
    const char* arguments = static_cast<const char*>(parameters[0]);
    node.arguments.assign(arguments, arguments + kernel->argument_bytes);
    return node;
}

void submit(void* stream, const Node& node) {
    auto capture = captures.find(stream);
    if (capture != captures.end())
        capture->second->nodes.push_back(node);
    else
        run(node);
}

struct KernelNode {
    const Kernel* kernel;
    unsigned x, y, z, threads, threads_y, threads_z, shared;
    void** parameters;
};
Node node_of(const KernelNode& node) {
    return launch_node(node.kernel, Index{node.x, node.y, node.z}, node.threads, node.shared,
                       node.parameters);
}
struct Copy3D {
    size_t source_x, source_y, source_z, source_level;
    int source_kind;
    void* source_host;
    uint64_t source;
    void* source_array;
    void* reserved;
    size_t source_pitch, source_height;
    size_t target_x, target_y, target_z, target_level;
    int target_kind;
    void* target_host;
    uint64_t target;
    void* target_array;
    void* reserved_too;
    size_t target_pitch, target_height, width, height, depth;
};
Node node_of(const Copy3D& copy) {
    Node node = {};
    node.target = copy.target, node.source = copy.source, node.bytes = copy.width;
    return node;
}
// A node's handle is its place, counted from one: only chains are built.
int add(size_t* handle, Graph* graph, const size_t* before, size_t count, const Node& node) {
    if (count != !graph->nodes.empty() || (count == 1 && *before != graph->nodes.size())) return INVALID;
    graph->nodes.push_back(node);
    return *handle = graph->nodes.size(), SUCCESS;
}

char context, pool;

// All state here is one device's, and tests may use it from several threads.
std::mutex device;
typedef std::lock_guard<std::mutex> Lock;

}  // namespace

extern "C" {

int cuInit(unsigned) { return SUCCESS; }
int cuDriverGetVersion(int* version) { return *version = 12080, SUCCESS; }
int cuDeviceGetCount(int* count) { return *count = 1, SUCCESS; }
int cuDeviceGet(int* device, int index) { return *device = index, index == 0 ? SUCCESS : INVALID; }
int cuDeviceGetName(char* name, int length, int) {
    return snprintf(name, length, "emulated device"), SUCCESS;
}
int cuDeviceGetAttribute(int* value, int attribute, int) {
    switch (attribute) {
        case 16: *value = 1; break;   // multiprocessors
        case 75: *value = 9; break;   // major compute capability
        case 76: *value = 0; break;   // minor
        case 87: *value = 2; break;   // single to double precision
        case 115: *value = 1; break;  // memory pools
        default: *value = 0;
    }
    return SUCCESS;
}
int cuDeviceTotalMem_v2(size_t* bytes, int) { return *bytes = TOTAL_BYTES, SUCCESS; }
int cuDevicePrimaryCtxRetain(void** out, int) { return *out = &context, SUCCESS; }
int cuDevicePrimaryCtxRelease_v2(int) { return SUCCESS; }
int cuCtxGetCurrent(void** out) { return *out = &context, SUCCESS; }
int cuCtxSetCurrent(void*) { return SUCCESS; }
int cuCtxSynchronize() { return SUCCESS; }
int cuDeviceGetDefaultMemPool(void** out, int) { return *out = &pool, SUCCESS; }
int cuMemPoolSetAttribute(void*, int, void*) { return SUCCESS; }

int cuStreamCreate(void** stream, unsigned) { return *stream = malloc(1), SUCCESS; }
int cuStreamDestroy_v2(void* stream) { return free(stream), SUCCESS; }
int cuStreamSynchronize(void* stream) {
    Lock lock(device);
    return captures.count(stream) ? INVALID : SUCCESS;
}
int cuStreamWaitEvent(void*, void*, unsigned) { return SUCCESS; }
int cuEventCreate(Event** event, unsigned) { return *event = new Event, SUCCESS; }
int cuEventDestroy_v2(Event* event) { return delete event, SUCCESS; }
int cuEventRecord(Event* event, void*) {
    // Launches have run when they return.
    return event->at = std::chrono::steady_clock::now(), SUCCESS;
}
int cuEventQuery(Event*) { return SUCCESS; }
int cuEventSynchronize(Event*) { return SUCCESS; }
int cuEventElapsedTime_v2(float* ms, const Event* start, const Event* end) {
    return *ms = std::chrono::duration<float, std::milli>(end->at - start->at).count(), SUCCESS;
}
int cuEventElapsedTime(float* ms, const Event* start, const Event* end) {
    return cuEventElapsedTime_v2(ms, start, end);
}

int cuMemGetInfo_v2(size_t* free, size_t* total) {
    Lock lock(device);
    return *total = TOTAL_BYTES, *free = TOTAL_BYTES - used_bytes, SUCCESS;
}
int cuMemAllocAsync(uint64_t* pointer, size_t bytes, void* stream) {
    Lock lock(device);
    return captures.count(stream) ? INVALID : allocate(pointer, bytes);
}
int cuMemFreeAsync(uint64_t pointer, void* stream) {
    Lock lock(device);
    return captures.count(stream) ? INVALID : release(pointer);
}
int cuMemcpyHtoDAsync_v2(uint64_t target, const void* source, size_t bytes, void* stream) {
    Lock lock(device);
    if (captures.count(stream)) return INVALID;
    return memcpy(reinterpret_cast<void*>(target), source, bytes), SUCCESS;
}
int cuMemcpyDtoHAsync_v2(void* target, uint64_t source, size_t bytes, void* stream) {
    Lock lock(device);
    if (captures.count(stream)) return INVALID;
    return memcpy(target, reinterpret_cast<void*>(source), bytes), SUCCESS;
}
int cuMemsetD8Async(uint64_t target, unsigned char value, size_t bytes, void* stream) {
    Lock lock(device);
    if (captures.count(stream)) return INVALID;
    return memset(reinterpret_cast<void*>(target), value, bytes), SUCCESS;
}
int cuMemcpyDtoDAsync_v2(uint64_t target, uint64_t source, size_t bytes, void* stream) {
    Lock lock(device);
    Node node = {};
    node.target = target, node.source = source, node.bytes = bytes;
    return submit(stream, node), SUCCESS;
}

int cuModuleLoadData(void** module, const void*) { return *module = &context, SUCCESS; }
int cuModuleUnload(void*) { return SUCCESS; }
int cuModuleGetFunction(const Kernel** function, void*, const char* name) {
    auto found = kernels().find(name);
    if (found == kernels().end()) {
        fprintf(stderr, "no kernel %s\n", name);
        return NOT_FOUND;
    }
    return *function = &found->second, SUCCESS;
}
int cuFuncSetAttribute(const Kernel*, int, int) { return SUCCESS; }
struct LaunchConfig {
    unsigned x, y, z, threads, threads_y, threads_z, shared;
    void* stream;
    void* attributes;
    unsigned attribute_count;
};
int cuLaunchKernelEx(const LaunchConfig* config, const Kernel* kernel, void** parameters, void**) {
    const unsigned x = config->x, y = config->y, z = config->z;
    const unsigned threads = config->threads, shared = config->shared;
    if (x == 0 || y == 0 || z == 0 || y > 65535 || z > 65535 || threads > 1024 || shared > 227 << 10)
        return INVALID;
    const Node node = launch_node(kernel, Index{x, y, z}, threads, shared, parameters);
    Lock lock(device);
    return submit(config->stream, node), SUCCESS;
}

int cuStreamBeginCapture_v2(void* stream, int) {
    Lock lock(device);
    return captures[stream] = new Graph, SUCCESS;
}
int cuStreamEndCapture(void* stream, Graph** graph) {
    Lock lock(device);
    *graph = captures[stream];
    return captures.erase(stream), SUCCESS;
}
int cuStreamIsCapturing(void* stream, int* status) {
    Lock lock(device);
    return *status = captures.count(stream) ? 1 : 0, SUCCESS;
}
int cuStreamGetCaptureInfo_v2(void* stream, int* status, void*, Graph** graph, void*, void*) {
    Lock lock(device);
    auto capture = captures.find(stream);
    *status = capture != captures.end();
    if (*status) *graph = capture->second;
    return SUCCESS;
}
int cuThreadExchangeStreamCaptureMode(int*) { return SUCCESS; }
int cuUserObjectCreate(Object** object, void* kept, void (*release)(void*), unsigned, unsigned) {
    return *object = new Object{kept, release}, SUCCESS;
}
int cuUserObjectRelease(Object* object, unsigned) {
    object->release(object->kept);
    return delete object, SUCCESS;
}
int cuGraphRetainUserObject(Graph* graph, Object* object, unsigned, unsigned) {
    Lock lock(device);
    graph->kept.emplace_back(object, [](Object* object) { cuUserObjectRelease(object, 1); });
    return SUCCESS;
}
int cuGraphCreate(Graph** graph, unsigned) { return *graph = new Graph, SUCCESS; }
int cuGraphAddKernelNode_v2(size_t* handle, Graph* graph, const size_t* before, size_t count,
                            const KernelNode* node) {
    return add(handle, graph, before, count, node_of(*node));
}
int cuGraphAddMemcpyNode(size_t* handle, Graph* graph, const size_t* before, size_t count,
                         const Copy3D* copy, void*) {
    return add(handle, graph, before, count, node_of(*copy));
}
int cuGraphExecKernelNodeSetParams_v2(Graph* graph, size_t handle, const KernelNode* node) {
    Node& old = graph->nodes.at(handle - 1);
    if (old.kernel != node->kernel) return INVALID;
    return old = node_of(*node), SUCCESS;
}
int cuGraphExecMemcpyNodeSetParams(Graph* graph, size_t handle, const Copy3D* copy, void*) {
    Node& old = graph->nodes.at(handle - 1);
    if (old.kernel != nullptr) return INVALID;
    return old = node_of(*copy), SUCCESS;
}
int cuGraphInstantiateWithFlags(Graph** executable, Graph* graph, unsigned long long) {
    return *executable = new Graph(*graph), SUCCESS;
}
int cuGraphUpload(Graph*, void*) { return SUCCESS; }
int cuGraphLaunch(Graph* graph, void*) {
    Lock lock(device);
    for (const Node& node : graph->nodes) run(node);
    return SUCCESS;
}
int cuGraphExecDestroy(Graph* graph) { return delete graph, SUCCESS; }
int cuGraphDestroy(Graph* graph) { return delete graph, SUCCESS; }

int cuGetErrorName(int error, const char** name) {
    return *name = error == OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR", SUCCESS;
}
int cuGetErrorString(int error, const char** name) { return cuGetErrorName(error, name); }

}  // extern "C"
