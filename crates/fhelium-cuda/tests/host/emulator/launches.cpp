// The driver's modules, launches, captures and graphs.

#include "driver.h"

#include <memory>
#include <string>

struct Function {
    const Kernel* kernel;
    Context* context;  // null once its module is gone
    unsigned most_shared;  // memory of a block
};
struct Module {
    Context* context;
    std::map<std::string, Function*> functions;
};
struct Node {
    const Function* function;  // null for a copy
    Index grid;
    unsigned threads;
    size_t shared;
    std::vector<char> arguments;
    uint64_t target, source;
    size_t bytes;
    bool follows;  // the node before, in a graph
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

namespace {

int run(const Node& node) {
    if (node.function == nullptr) {
        if (!owned(node.target, node.bytes) || !owned(node.source, node.bytes)) return INVALID_VALUE;
        memcpy(reinterpret_cast<void*>(node.target), reinterpret_cast<void*>(node.source), node.bytes);
        return SUCCESS;
    }
    if (node.function->context != current) return INVALID_HANDLE;
    const Kernel& kernel = *node.function->kernel;
    for (size_t at = 0; at + 8 <= node.arguments.size(); at += 8) {
        uint64_t word;
        memcpy(&word, node.arguments.data() + at, 8);
        const auto* found = holder(word);
        if (found != nullptr && found->second.device != current->device) {
            fprintf(stderr, "%s runs on device %d and was given memory of device %d\n", kernel.name,
                    current->device, found->second.device);
            return ILLEGAL_ADDRESS;
        }
    }
    fh_run_grid(kernel, node.grid, node.threads, node.shared, node.arguments.data());
    return SUCCESS;
}

Node launch_node(const Function* function, Index grid, unsigned threads, size_t shared,
                 void** parameters) {
    Node node = {};
    node.function = function, node.grid = grid, node.threads = threads, node.shared = shared;
    const char* arguments = static_cast<const char*>(parameters[0]);
    node.arguments.assign(arguments, arguments + function->kernel->argument_bytes);
    return node;
}

int submit(void* stream, const Node& node) {
    if (!usable(stream)) return INVALID_HANDLE;
    auto capture = captures.find(stream);
    if (capture == captures.end()) return run(node);
    capture->second->nodes.push_back(node);
    return capture->second->nodes.back().follows = true, SUCCESS;
}

struct KernelNode {
    const Function* function;
    unsigned x, y, z, threads, threads_y, threads_z, shared;
    void** parameters;
};
Node node_of(const KernelNode& node) {
    return launch_node(node.function, Index{node.x, node.y, node.z}, node.threads, node.shared,
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
    if (count > 1 || (count == 1 && *before != graph->nodes.size())) return INVALID_VALUE;
    graph->nodes.push_back(node);
    graph->nodes.back().follows = count == 1;
    return *handle = graph->nodes.size(), SUCCESS;
}
struct Edge {
    unsigned char from_port, to_port, type, reserved[5];
};

}  // namespace

extern "C" {

int cuMemcpyDtoDAsync_v2(uint64_t target, uint64_t source, size_t bytes, void* stream) {
    IN_A_CONTEXT();
    Node node = {};
    node.target = target, node.source = source, node.bytes = bytes;
    return submit(stream, node);
}

int cuModuleLoadData(Module** module, const void*) {
    IN_A_CONTEXT();
    return *module = new Module{current, {}}, SUCCESS;
}
int cuModuleUnload(Module* module) {
    IN_A_CONTEXT();
    if (module->context != current) return INVALID_HANDLE;
    for (auto& function : module->functions) function.second->context = nullptr;
    return delete module, SUCCESS;
}
int cuModuleGetFunction(Function** function, Module* module, const char* name) {
    IN_A_CONTEXT();
    const Kernel* kernel = fh_find(name);
    if (kernel == nullptr) {
        fprintf(stderr, "no kernel %s\n", name);
        return NOT_FOUND;
    }
    Function*& made = module->functions[name];
    if (made == nullptr) made = new Function{kernel, module->context, 48 << 10};
    return *function = made, SUCCESS;
}
int cuFuncSetAttribute(Function* function, int attribute, int value) {
    CALL();
    // What a multiprocessor shares out, in per cent.
    if (attribute == 9) return value >= 0 && value <= 100 ? SUCCESS : INVALID_VALUE;
    // The most shared memory of a block.
    if (attribute != 8 || value < 0 || unsigned(value) > BLOCK_SHARED) return INVALID_VALUE;
    return function->most_shared = value, SUCCESS;
}
struct LaunchConfig {
    unsigned x, y, z, threads, threads_y, threads_z, shared;
    void* stream;
    void* attributes;
    unsigned attribute_count;
};
int cuLaunchKernelEx(const LaunchConfig* config, const Function* function, void** parameters, void**) {
    IN_A_CONTEXT();
    const unsigned x = config->x, y = config->y, z = config->z;
    const unsigned threads = config->threads, shared = config->shared;
    if (x == 0 || y == 0 || z == 0 || y > 65535 || z > 65535 || threads > 1024 || shared > function->most_shared)
        return INVALID_VALUE;
    return submit(config->stream, launch_node(function, Index{x, y, z}, threads, shared, parameters));
}

int cuStreamBeginCapture_v2(void* stream, int) {
    IN_A_CONTEXT();
    if (!usable(stream)) return INVALID_HANDLE;
    return captures[stream] = new Graph, SUCCESS;
}
int cuStreamEndCapture(void* stream, Graph** graph) {
    IN_A_CONTEXT();
    *graph = captures[stream];
    return captures.erase(stream), SUCCESS;
}
int cuStreamIsCapturing(void* stream, int* status) {
    IN_A_CONTEXT();
    return *status = captures.count(stream) ? 1 : 0, SUCCESS;
}
int cuStreamGetCaptureInfo_v2(void* stream, int* status, void*, Graph** graph, void*, void*) {
    IN_A_CONTEXT();
    if (!usable(stream)) return INVALID_HANDLE;
    auto capture = captures.find(stream);
    *status = capture != captures.end();
    if (*status) *graph = capture->second;
    return SUCCESS;
}
int cuThreadExchangeStreamCaptureMode(int*) {
    CALL();
    return SUCCESS;
}
int cuUserObjectCreate(Object** object, void* kept, void (*release)(void*), unsigned, unsigned) {
    CALL();
    return *object = new Object{kept, release}, SUCCESS;
}
int cuUserObjectRelease(Object* object, unsigned) {
    CALL();
    object->release(object->kept);
    return delete object, SUCCESS;
}
int cuGraphRetainUserObject(Graph* graph, Object* object, unsigned, unsigned) {
    CALL();
    graph->kept.emplace_back(object, [](Object* object) { cuUserObjectRelease(object, 1); });
    return SUCCESS;
}
int cuGraphCreate(Graph** graph, unsigned) {
    CALL();
    return *graph = new Graph, SUCCESS;
}
int cuGraphAddKernelNode_v2(size_t* handle, Graph* graph, const size_t* before, size_t count,
                            const KernelNode* node) {
    IN_A_CONTEXT();
    return add(handle, graph, before, count, node_of(*node));
}
int cuGraphAddMemcpyNode(size_t* handle, Graph* graph, const size_t* before, size_t count,
                         const Copy3D* copy, Context* context) {
    IN_A_CONTEXT();
    if (context != current) return INVALID_CONTEXT;
    return add(handle, graph, before, count, node_of(*copy));
}
// Of launches that may overlap: the port is that of all blocks having said so.
int cuGraphAddDependencies_v2(Graph* graph, const size_t* from, const size_t* to, const Edge* edge,
                              size_t count) {
    IN_A_CONTEXT();
    if (count != 1 || *from == 0 || *to != *from + 1 || *to > graph->nodes.size()) return INVALID_VALUE;
    const Node& before = graph->nodes[*from - 1];
    Node& node = graph->nodes[*to - 1];
    if (node.follows || before.function == nullptr || node.function == nullptr) return INVALID_VALUE;
    if (edge->from_port != 1 || edge->to_port != 0 || edge->type != 1) return INVALID_VALUE;
    return node.follows = true, SUCCESS;
}
int cuGraphExecKernelNodeSetParams_v2(Graph* graph, size_t handle, const KernelNode* node) {
    IN_A_CONTEXT();
    Node& old = graph->nodes.at(handle - 1);
    if (old.function != node->function) return INVALID_VALUE;
    return old = node_of(*node), SUCCESS;
}
int cuGraphExecMemcpyNodeSetParams(Graph* graph, size_t handle, const Copy3D* copy, Context* context) {
    IN_A_CONTEXT();
    Node& old = graph->nodes.at(handle - 1);
    if (old.function != nullptr || context != current) return INVALID_VALUE;
    return old = node_of(*copy), SUCCESS;
}
int cuGraphInstantiateWithFlags(Graph** executable, Graph* graph, unsigned long long) {
    IN_A_CONTEXT();
    // Nodes that do not follow each other would run in any order.
    for (size_t at = 1; at < graph->nodes.size(); ++at)
        if (!graph->nodes[at].follows) return INVALID_VALUE;
    return *executable = new Graph(*graph), SUCCESS;
}
int cuGraphUpload(Graph*, void* stream) {
    IN_A_CONTEXT();
    return usable(stream) ? SUCCESS : INVALID_HANDLE;
}
int cuGraphLaunch(Graph* graph, void* stream) {
    IN_A_CONTEXT();
    if (!usable(stream)) return INVALID_HANDLE;
    for (const Node& node : graph->nodes)
        if (const int failed = run(node)) return failed;
    return SUCCESS;
}
int cuGraphExecDestroy(Graph* graph) {
    CALL();
    return delete graph, SUCCESS;
}
int cuGraphDestroy(Graph* graph) {
    CALL();
    return delete graph, SUCCESS;
}

}  // extern "C"
