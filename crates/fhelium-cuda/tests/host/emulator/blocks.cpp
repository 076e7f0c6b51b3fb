// Blocks of a kernel on the host: their threads are fibers that run in turn, from another one on and the
// other way round each time: what they leave without a barrier is not always there.

#include "device.h"

#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <ucontext.h>

Index threadIdx, blockIdx, gridDim;
unsigned fh_threads;
uint64_t fh_lanes[1024];

namespace {

constexpr size_t STACK_BYTES = 128 << 10;

struct Fiber {
    std::vector<char> stack = std::vector<char>(STACK_BYTES);
    ucontext_t start;
    jmp_buf at;
    bool started, done;
    // It waits until so many threads have come to the barrier.
    unsigned barrier;
    uint64_t awaited;
};

std::vector<Fiber*> fibers;
// Threads that have come to each barrier since the block began.
uint64_t arrived[FIRST_WARP + 32];
uint64_t rounds;
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
    fh_threads = threads;
    memset(arrived, 0, sizeof arrived);
    fh_forget_copies();
    for (unsigned t = 0; t < threads; ++t) {
        fibers[t]->started = fibers[t]->done = false;
        fibers[t]->barrier = fibers[t]->awaited = 0;
    }
    for (;;) {
        unsigned done = 0, ran = 0;
        const uint64_t first = ++rounds * 37;
        for (unsigned turn = 0; turn < threads; ++turn) {
            const unsigned t = (first + (rounds % 2 == 0 ? turn : threads - turn)) % threads;
            Fiber& fiber = *fibers[t];
            if (!fiber.done && arrived[fiber.barrier] >= fiber.awaited) {
                threadIdx = Index{t, 0, 0};
                resume(&fiber);
                ran += 1;
            }
            done += fiber.done;
        }
        if (done == threads) return;
        if (ran == 0) {
            fprintf(stderr, "%s: %u of %u threads left before a barrier\n", running->name, done, threads);
            abort();
        }
    }
}

std::map<std::string, Kernel>& kernels() {
    static std::map<std::string, Kernel>& all = *new std::map<std::string, Kernel>;
    return all;
}

}  // namespace

void fh_barrier(unsigned barrier, unsigned threads) {
    const Index index = threadIdx;
    const uint64_t place = arrived[barrier]++;
    current->barrier = barrier;
    current->awaited = (place / threads + 1) * threads;
    if (_setjmp(current->at) == 0) _longjmp(scheduler, 1);
    threadIdx = index;
}

uint64_t* fh_shared_memory() { return shared_memory.data(); }

void fh_register(const Kernel& kernel) { kernels()[kernel.name] = kernel; }

const Kernel* fh_find(const char* name) {
    auto found = kernels().find(name);
    return found == kernels().end() ? nullptr : &found->second;
}

void fh_run_grid(const Kernel& kernel, Index grid, unsigned threads, size_t shared,
                 const void* arguments) {
    running = &kernel;
    running_arguments = arguments;
    gridDim = grid;
    for (unsigned z = 0; z < grid.z; ++z)
        for (unsigned y = 0; y < grid.y; ++y)
            for (unsigned x = 0; x < grid.x; ++x) {
                blockIdx = Index{x, y, z};
                shared_memory.assign(shared / 8 + 2, FH_PATTERN);
                run_block(threads);
                if (shared_memory.back() != FH_PATTERN || shared_memory[shared / 8] != FH_PATTERN) {
                    fprintf(stderr, "%s wrote behind its shared memory\n", kernel.name);
                    abort();
                }
            }
}
