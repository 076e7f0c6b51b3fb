/* Drivers that something is wrong with, by macro:
   OLD       knows only CUDA 11.8;
   NO_DEVICE cannot start for want of a device;
   STUB      is a toolkit's, to link with;
   EMPTY     counts no device;
   FOREIGN   has a device that no kernel was built for. */
#include <stddef.h>
#include <string.h>

enum { SUCCESS = 0, INVALID_VALUE = 1, ERROR_STUB_LIBRARY = 34, ERROR_NO_DEVICE = 100 };
static char object;

#if defined STUB
int cuInit(unsigned flags) { return ERROR_STUB_LIBRARY; }
#elif defined NO_DEVICE
int cuInit(unsigned flags) { return ERROR_NO_DEVICE; }
#else
int cuInit(unsigned flags) { return SUCCESS; }
#endif

int cuDriverGetVersion(int* version) {
#ifdef STUB
    return ERROR_STUB_LIBRARY;
#elif defined OLD
    *version = 11080;
#else
    *version = 12080;
#endif
    return SUCCESS;
}
int cuDeviceGetCount(int* count) {
#ifdef FOREIGN
    *count = 1;
#else
    *count = 0;
#endif
    return SUCCESS;
}
int cuGetErrorName(int error, const char** name) {
    *name = "CUDA_ERROR_NO_DEVICE";
    return SUCCESS;
}

int cuDeviceGet(int* device, int index) { return *device = index, SUCCESS; }
int cuDeviceGetName(char* name, int length, int device) {
    return strncpy(name, "Old Card", (size_t)length), SUCCESS;
}
int cuDeviceTotalMem_v2(size_t* bytes, int device) { return *bytes = 1 << 30, SUCCESS; }
int cuDeviceGetAttribute(int* value, int attribute, int device) {
    /* The compute capability is 5.2. */
    *value = attribute == 75 ? 5 : attribute == 76 ? 2 : 1;
    return SUCCESS;
}
int cuDevicePrimaryCtxRetain(void** context, int device) { return *context = &object, SUCCESS; }
int cuDevicePrimaryCtxRelease_v2(int device) { return SUCCESS; }
int cuCtxGetCurrent(void** context) { return *context = &object, SUCCESS; }
int cuCtxSetCurrent(void* context) { return SUCCESS; }
