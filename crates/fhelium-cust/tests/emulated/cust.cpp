// What cust needs of a driver beside fhelium-cuda's emulated one, whose own functions win: copies
// and memory outside any stream, launches, and a second context with streams and memory of its own.

#include <cstddef>
#include <cstdint>
#include <map>

#define FUNCTION extern "C" __attribute__((weak)) int

extern "C" {
int cuCtxGetCurrent(void** context);
int cuStreamCreate(void** stream, unsigned flags);
int cuMemAllocAsync(uint64_t* pointer, size_t bytes, void* stream);
int cuMemFreeAsync(uint64_t pointer, void* stream);
int cuMemcpyHtoDAsync_v2(uint64_t target, const void* source, size_t bytes, void* stream);
int cuMemcpyDtoHAsync_v2(void* target, uint64_t source, size_t bytes, void* stream);
int cuMemcpyDtoDAsync_v2(uint64_t target, uint64_t source, size_t bytes, void* stream);
int cuModuleLoadData(void** module, const void* image);
int cuLaunchKernelEx(const void* config, const void* kernel, void** parameters, void** extra);
}

namespace {
enum { SUCCESS = 0, CONTEXT = 1, DEVICE_ORDINAL = 9 };
char second;
bool second_is_current;
std::map<uint64_t, void*> owners;  // of streams and memory

void* current() {
    void* context = nullptr;
    cuCtxGetCurrent(&context);
    return second_is_current ? &second : context;
}
}  // namespace

FUNCTION cuCtxCreate_v2(void** context, unsigned, int) {
    second_is_current = true;
    return *context = &second, SUCCESS;
}
FUNCTION cuCtxDestroy_v2(void*) { return second_is_current = false, SUCCESS; }

FUNCTION cuStreamCreateWithPriority(void** stream, unsigned flags, int) {
    cuStreamCreate(stream, flags);
    return owners[reinterpret_cast<uint64_t>(*stream)] = current(), SUCCESS;
}
FUNCTION cuStreamGetCtx(void* stream, void** context) {
    return *context = owners[reinterpret_cast<uint64_t>(stream)], SUCCESS;
}

FUNCTION cuMemAlloc_v2(uint64_t* pointer, size_t bytes) {
    const int status = cuMemAllocAsync(pointer, bytes, nullptr);
    if (status == SUCCESS) owners[*pointer] = current();
    return status;
}
FUNCTION cuMemFree_v2(uint64_t pointer) { return cuMemFreeAsync(pointer, nullptr); }
FUNCTION cuPointerGetAttribute(void* value, int attribute, uint64_t pointer) {
    const auto owner = owners.find(pointer);
    if (attribute == CONTEXT)
        *static_cast<void**>(value) = owner == owners.end() ? nullptr : owner->second;
    else if (attribute == DEVICE_ORDINAL)
        *static_cast<int*>(value) = 0;
    return SUCCESS;
}
FUNCTION cuMemcpyHtoD_v2(uint64_t target, const void* source, size_t bytes) {
    return cuMemcpyHtoDAsync_v2(target, source, bytes, nullptr);
}
FUNCTION cuMemcpyDtoH_v2(void* target, uint64_t source, size_t bytes) {
    return cuMemcpyDtoHAsync_v2(target, source, bytes, nullptr);
}
FUNCTION cuMemcpyDtoD_v2(uint64_t target, uint64_t source, size_t bytes) {
    return cuMemcpyDtoDAsync_v2(target, source, bytes, nullptr);
}

FUNCTION cuModuleLoadDataEx(void** module, const void* image, unsigned, void*, void**) {
    return cuModuleLoadData(module, image);
}
FUNCTION cuLaunchKernel(const void* kernel, unsigned x, unsigned y, unsigned z, unsigned threads,
                        unsigned threads_y, unsigned threads_z, unsigned shared, void* stream,
                        void** parameters, void**) {
    struct {
        unsigned x, y, z, threads, threads_y, threads_z, shared;
        void* stream;
        void* attributes;
        unsigned attribute_count;
    } config = {x, y, z, threads, threads_y, threads_z, shared, stream, nullptr, 0};
    return cuLaunchKernelEx(&config, kernel, parameters, nullptr);
}
