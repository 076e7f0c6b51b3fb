// A driver, libcuda.so.1, of two devices that do not exist: memory is the host's, launches run at
// once, streams have one order. Enough of it for fhelium-cuda's tests to run its kernels, memory and
// graphs without a GPU.
//
// It is stricter than a driver has to be, so that mistakes show. Fresh memory holds a pattern and ends
// in one: reads of what nobody wrote give wrong residues, and writes behind a buffer are found when it
// is freed. A thread has no context until it sets one; streams, events and kernels are used in their
// own context alone, and memory on its own device. In a forked process nothing but cuInit may be
// called: anything else ends it.

#include "driver.h"

namespace {

const std::map<int, const char*> NAMES = {
    {INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
    {OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
    {NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED"},
    {INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE"},
    {INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT"},
    {INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE"},
    {NOT_FOUND, "CUDA_ERROR_NOT_FOUND"},
    {ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS"},
    {CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
};

constexpr size_t GUARD_WORDS = 16;

int allocate(uint64_t* pointer, size_t bytes) {
    size_t& used = devices[current->device].used_bytes;
    if (bytes == 0) return INVALID_VALUE;
    if (used + bytes > TOTAL_BYTES) return OUT_OF_MEMORY;
    size_t words = (bytes + 7) / 8;
    uint64_t* memory = static_cast<uint64_t*>(aligned_alloc(256, (words + GUARD_WORDS) * 8 / 256 * 256 + 256));
    for (size_t i = 0; i < words + GUARD_WORDS; ++i) memory[i] = FH_PATTERN;
    *pointer = reinterpret_cast<uint64_t>(memory);
    allocations[*pointer] = Allocation{words, current->device};
    used += words * 8;
    return SUCCESS;
}

int release(uint64_t pointer) {
    auto found = allocations.find(pointer);
    if (found == allocations.end() || found->second.device != current->device) return INVALID_VALUE;
    uint64_t* memory = reinterpret_cast<uint64_t*>(pointer);
    const size_t words = found->second.words;
    for (size_t i = 0; i < GUARD_WORDS; ++i)
        if (memory[words + i] != FH_PATTERN) {
            fprintf(stderr, "something wrote behind a buffer of %zu words\n", words);
            abort();
        }
    devices[current->device].used_bytes -= words * 8;
    allocations.erase(found);
    free(memory);
    return SUCCESS;
}

}  // namespace

extern "C" {

int cuInit(unsigned) {
    if (process != 0 && process != getpid()) return NOT_INITIALIZED;
    return process = getpid(), SUCCESS;
}
int cuDriverGetVersion(int* version) { return *version = 12080, SUCCESS; }
int cuGetErrorName(int error, const char** name) {
    auto found = NAMES.find(error);
    return *name = found == NAMES.end() ? "CUDA_ERROR" : found->second, SUCCESS;
}
int cuGetErrorString(int error, const char** name) { return cuGetErrorName(error, name); }

int cuDeviceGetCount(int* count) {
    CALL();
    return *count = DEVICES, SUCCESS;
}
int cuDeviceGet(int* device, int index) {
    CALL();
    return *device = index, index >= 0 && index < DEVICES ? SUCCESS : INVALID_DEVICE;
}
int cuDeviceGetName(char* name, int length, int) {
    CALL();
    return snprintf(name, length, "emulated device"), SUCCESS;
}
int cuDeviceGetAttribute(int* value, int attribute, int device) {
    CALL();
    switch (attribute) {
        case 16: *value = device == 0 ? 1 : 4; break;  // multiprocessors
        case 75: *value = 9; break;   // major compute capability
        case 76: *value = 0; break;   // minor
        case 87: *value = 2; break;   // single to double precision
        case 97: *value = BLOCK_SHARED; break;  // shared memory of a block
        case 115: *value = 1; break;  // memory pools
        default: *value = 0;
    }
    return SUCCESS;
}
int cuDeviceTotalMem_v2(size_t* bytes, int) {
    CALL();
    return *bytes = TOTAL_BYTES, SUCCESS;
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
    CALL();
    devices[device].primary.users += 1;
    return *context = &devices[device].primary, SUCCESS;
}
int cuDevicePrimaryCtxRelease_v2(int device) {
    CALL();
    int& users = devices[device].primary.users;
    return users > 0 ? (users -= 1, SUCCESS) : INVALID_CONTEXT;
}
int cuDeviceGetDefaultMemPool(void** pool, int device) {
    CALL();
    return *pool = &devices[device].pool, SUCCESS;
}
int cuMemPoolSetAttribute(void*, int, void*) {
    CALL();
    return SUCCESS;
}

int cuCtxCreate_v2(Context** context, unsigned, int device) {
    CALL();
    *context = current = new Context{device, 1};
    return created.insert(*context), SUCCESS;
}
int cuCtxDestroy_v2(Context* context) {
    CALL();
    if (created.erase(context) == 0) return INVALID_CONTEXT;
    if (current == context) current = nullptr;
    return delete context, SUCCESS;
}
int cuCtxGetCurrent(Context** context) {
    CALL();
    return *context = current, SUCCESS;
}
int cuCtxSetCurrent(Context* context) {
    CALL();
    if (context != nullptr && !exists(context)) return INVALID_CONTEXT;
    return current = context, SUCCESS;
}
int cuCtxSynchronize() {
    IN_A_CONTEXT();
    return SUCCESS;
}

int cuStreamCreate(void** stream, unsigned) {
    IN_A_CONTEXT();
    *stream = new Stream{current};
    return streams.insert(*stream), SUCCESS;
}
int cuStreamDestroy_v2(void* stream) {
    IN_A_CONTEXT();
    if (!usable(stream) || streams.erase(stream) == 0) return INVALID_HANDLE;
    return delete static_cast<Stream*>(stream), SUCCESS;
}
int cuStreamGetCtx(void* stream, Context** context) {
    CALL();
    if (streams.count(stream) == 0) return INVALID_HANDLE;
    return *context = static_cast<Stream*>(stream)->context, SUCCESS;
}
int cuStreamSynchronize(void* stream) {
    IN_A_CONTEXT();
    return at_once(stream);
}
int cuEventCreate(Event** event, unsigned) {
    IN_A_CONTEXT();
    *event = new Event{current, {}};
    return events.insert(*event), SUCCESS;
}
int cuEventDestroy_v2(Event* event) {
    CALL();
    if (events.erase(event) == 0) return INVALID_HANDLE;
    return delete event, SUCCESS;
}
int cuEventRecord(Event* event, void* stream) {
    IN_A_CONTEXT();
    if (events.count(event) == 0 || event->context != current || !usable(stream))
        return INVALID_HANDLE;
    return event->at = std::chrono::steady_clock::now(), SUCCESS;
}
// The event may be another device's.
int cuStreamWaitEvent(void* stream, Event* event, unsigned) {
    IN_A_CONTEXT();
    return events.count(event) != 0 && usable(stream) ? SUCCESS : INVALID_HANDLE;
}
int cuEventQuery(Event* event) {
    CALL();
    return events.count(event) != 0 ? SUCCESS : INVALID_HANDLE;
}
int cuEventSynchronize(Event* event) { return cuEventQuery(event); }
int cuEventElapsedTime_v2(float* ms, const Event* start, const Event* end) {
    CALL();
    return *ms = std::chrono::duration<float, std::milli>(end->at - start->at).count(), SUCCESS;
}
int cuEventElapsedTime(float* ms, const Event* start, const Event* end) {
    return cuEventElapsedTime_v2(ms, start, end);
}

int cuMemGetInfo_v2(size_t* free, size_t* total) {
    IN_A_CONTEXT();
    return *total = TOTAL_BYTES, *free = TOTAL_BYTES - devices[current->device].used_bytes, SUCCESS;
}
int cuMemAllocAsync(uint64_t* pointer, size_t bytes, void* stream) {
    IN_A_CONTEXT();
    const int refused = at_once(stream);
    return refused ? refused : allocate(pointer, bytes);
}
int cuMemFreeAsync(uint64_t pointer, void* stream) {
    IN_A_CONTEXT();
    const int refused = at_once(stream);
    return refused ? refused : release(pointer);
}
int cuMemcpyHtoDAsync_v2(uint64_t target, const void* source, size_t bytes, void* stream) {
    IN_A_CONTEXT();
    if (const int refused = at_once(stream)) return refused;
    if (!owned(target, bytes)) return INVALID_VALUE;
    return memcpy(reinterpret_cast<void*>(target), source, bytes), SUCCESS;
}
int cuMemcpyDtoHAsync_v2(void* target, uint64_t source, size_t bytes, void* stream) {
    IN_A_CONTEXT();
    if (const int refused = at_once(stream)) return refused;
    if (!owned(source, bytes)) return INVALID_VALUE;
    return memcpy(target, reinterpret_cast<void*>(source), bytes), SUCCESS;
}
int cuMemsetD8Async(uint64_t target, unsigned char value, size_t bytes, void* stream) {
    IN_A_CONTEXT();
    if (const int refused = at_once(stream)) return refused;
    if (!owned(target, bytes)) return INVALID_VALUE;
    return memset(reinterpret_cast<void*>(target), value, bytes), SUCCESS;
}

}  // extern "C"
