// What cust needs of a driver beside fhelium-cuda's emulated one, whose own functions win: copies
// and memory outside any stream, and launches.

#include "driver.h"

#define FUNCTION extern "C" __attribute__((weak)) int

extern "C" {
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
enum { CONTEXT = 1, DEVICE_ORDINAL = 9 };
std::map<uint64_t, Context*> owners;  // of memory outside the pool
}  // namespace

FUNCTION cuStreamCreateWithPriority(void** stream, unsigned flags, int) {
    return cuStreamCreate(stream, flags);
}

FUNCTION cuMemAlloc_v2(uint64_t* pointer, size_t bytes) {
    const int status = cuMemAllocAsync(pointer, bytes, nullptr);
    if (status == SUCCESS) owners[*pointer] = current;
    return status;
}
FUNCTION cuMemFree_v2(uint64_t pointer) { return cuMemFreeAsync(pointer, nullptr); }
FUNCTION cuPointerGetAttribute(void* value, int attribute, uint64_t pointer) {
    const auto owner = owners.find(pointer);
    const auto* memory = holder(pointer);
    if (memory == nullptr) return INVALID_VALUE;
    if (attribute == CONTEXT)
        *static_cast<void**>(value) = owner == owners.end() ? nullptr : owner->second;
    else if (attribute == DEVICE_ORDINAL)
        *static_cast<int*>(value) = memory->second.device;
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
