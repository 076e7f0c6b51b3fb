// What the two files of the driver share: devices, contexts, streams and who owns which memory.
#pragma once

#include "device.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>
#include <unistd.h>

enum {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NOT_INITIALIZED = 3,
    INVALID_DEVICE = 101,
    INVALID_CONTEXT = 201,
    INVALID_HANDLE = 400,
    NOT_FOUND = 500,
    ILLEGAL_ADDRESS = 700,
    CAPTURE_UNSUPPORTED = 900,
};

// ------------------------------------------------------------------- devices and contexts

constexpr int DEVICES = 2;
constexpr size_t TOTAL_BYTES = size_t(2) << 30;
constexpr unsigned BLOCK_SHARED = 227 << 10;  // the most that a kernel may be given

struct Context {
    int device;
    int users;  // it exists while there are some
};
struct Device {
    Context primary;
    size_t used_bytes;
    char pool;
};
inline Device devices[DEVICES] = {{{0, 0}, 0, 0}, {{1, 0}, 0, 0}};
// The tables stay when the process ends: threads may still call.
inline std::set<Context*>& created = *new std::set<Context*>;  // by cuCtxCreate
inline thread_local Context* current;
inline pid_t process;  // that has called cuInit

inline bool exists(Context* context) {
    for (Device& device : devices)
        if (context == &device.primary) return context->users > 0;
    return created.count(context) != 0;
}

// Every call: one at a time, and none in a forked process.
class Call {
    std::lock_guard<std::recursive_mutex> lock;
    static std::recursive_mutex& mutex() {
        static std::recursive_mutex& all = *new std::recursive_mutex;
        return all;
    }

  public:
    explicit Call(const char* name) : lock(mutex()) {
        if (process != 0 && process != getpid()) {
            fprintf(stderr, "%s was called in a forked process\n", name);
            abort();
        }
    }
};
#define CALL() Call call_(__func__)
#define IN_A_CONTEXT() \
    CALL();            \
    if (current == nullptr || !exists(current)) return INVALID_CONTEXT

struct Stream {
    Context* context;
};
struct Event {
    Context* context;
    std::chrono::steady_clock::time_point at;  // launches have run when they return
};
inline std::set<void*>& streams = *new std::set<void*>;
inline std::set<void*>& events = *new std::set<void*>;

// Whether the calling thread may use a stream: null and the two small handles are its context's.
inline bool usable(void* stream) {
    if (reinterpret_cast<uintptr_t>(stream) <= 2) return true;
    return streams.count(stream) != 0 && static_cast<Stream*>(stream)->context == current;
}

// ---------------------------------------------------------------------------------- memory

struct Allocation {
    size_t words;
    int device;
};
inline std::map<uint64_t, Allocation>& allocations = *new std::map<uint64_t, Allocation>;

// The allocation that an address lies in.
inline const std::pair<const uint64_t, Allocation>* holder(uint64_t address) {
    auto after = allocations.upper_bound(address);
    if (after == allocations.begin()) return nullptr;
    auto found = std::prev(after);
    return address < found->first + found->second.words * 8 ? &*found : nullptr;
}

// Whether so many bytes are the current device's.
inline bool owned(uint64_t address, size_t bytes) {
    const auto* found = holder(address);
    return found != nullptr && found->second.device == current->device &&
           address + bytes <= found->first + found->second.words * 8;
}

// ------------------------------------------------------------------------------- captures

struct Graph;
inline std::map<void*, Graph*>& captures = *new std::map<void*, Graph*>;

// What a call that a capture does not hold says to a stream.
inline int at_once(void* stream) {
    if (!usable(stream)) return INVALID_HANDLE;
    return captures.count(stream) ? CAPTURE_UNSUPPORTED : SUCCESS;
}
