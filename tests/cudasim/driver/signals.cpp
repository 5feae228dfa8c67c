// Faults of memory: in a kernel they become a problem of its context, elsewhere they are named before the process dies.
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>

#include "sim.h"

namespace cudasim {
namespace {

const int TIMEOUT = SIGRTMIN + 7;
struct sigaction before[NSIG];

thread_local sigjmp_buf* way_out = nullptr;
thread_local int caught = 0;
thread_local uintptr_t caught_at = 0;

void name_host_access(uintptr_t address) {
    auto after = sim().allocations.upper_bound(address);
    if (after == sim().allocations.begin()) return;
    Allocation* a = std::prev(after)->second;
    if (a->place != Place::device || address >= a->end()) return;
    std::string line = "cudasim: host_access: the host touched " + describe(address) + "\n";
    if (write(2, line.data(), line.size()) < 0) return;
}

void on_fault(int number, siginfo_t* info, void*) {
    if (way_out && number == SIGSEGV && open_on_fault(reinterpret_cast<uintptr_t>(info->si_addr))) return;
    if (way_out) {
        caught = number;
        caught_at = reinterpret_cast<uintptr_t>(info->si_addr);
        siglongjmp(*way_out, 1);
    }
    if (number == TIMEOUT) return;  // it ended just now
    if (number == SIGSEGV) name_host_access(reinterpret_cast<uintptr_t>(info->si_addr));
    sigaction(number, &before[number], nullptr);  // the instruction runs again, and the one before us sees it
}

// A fiber that has overrun its stack cannot run a handler on it.
void install_signal_stack() {
    thread_local void* stack = nullptr;
    if (stack) return;
    constexpr size_t bytes = 256 * 1024;
    stack = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    stack_t it{stack, 0, bytes};
    sigaltstack(&it, nullptr);
}

time_t time_limit() {
    const char* seconds = getenv("CUDASIM_TIMEOUT");
    return seconds ? atoi(seconds) : 120;
}

// Threads that wait for each other in a loop would wait for ever; after so much processor time the kernel is given up.
class Watchdog {
public:
    Watchdog() { set(time_limit()); }
    ~Watchdog() { set(0); }

private:
    static void set(time_t seconds) {
        thread_local timer_t timer;
        thread_local bool made = false;
        if (!made) {
            struct sigevent event = {};
            event.sigev_notify = SIGEV_THREAD_ID;
            event.sigev_signo = TIMEOUT;
            event._sigev_un._tid = static_cast<pid_t>(syscall(SYS_gettid));
            made = timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer) == 0;
        }
        struct itimerspec when = {};
        when.it_value.tv_sec = seconds;
        if (made) timer_settime(timer, 0, &when, nullptr);
    }
};

bool just_outside_an_allocation(uintptr_t address) {
    constexpr uintptr_t near = 4096;
    auto after = sim().allocations.upper_bound(address);
    auto guarded = [](const Allocation& a) { return a.live && a.guarded(); };
    if (after != sim().allocations.end() && guarded(*after->second) && after->first - address <= near) return true;
    if (after == sim().allocations.begin()) return false;
    const Allocation& a = *std::prev(after)->second;
    return guarded(a) && address >= a.end() && address < a.end() + near;
}

Problem explain(int number, uintptr_t address) {
    if (number == TIMEOUT)
        return {"timeout", text("no end after %ld s of processor time", time_limit()), CUDA_ERROR_LAUNCH_TIMEOUT};
    if (number == SIGFPE) return {"arithmetic", "an integer division by zero", CUDA_ERROR_LAUNCH_FAILED};
    if (number == SIGILL) return {"trap", "an illegal instruction", CUDA_ERROR_ILLEGAL_INSTRUCTION};
    Allocation* a = find_allocation(address);
    const char* near = just_outside_an_allocation(address) ? "out_of_bounds" : "illegal_address";
    const char* kind = a && !a->live ? "use_after_free" : near;
    return {kind, "an access to " + describe(address), CUDA_ERROR_ILLEGAL_ADDRESS};
}

}  // namespace

void install_handlers() {
    for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, TIMEOUT}) {
        struct sigaction now;
        sigaction(number, nullptr, &now);
        if (now.sa_sigaction == on_fault) continue;  // others, such as Python's faulthandler, may have come after us
        before[number] = now;
        struct sigaction ours = {};
        ours.sa_sigaction = on_fault;
        ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
        sigaction(number, &ours, nullptr);
    }
}

void run_guarded(const std::function<void()>& body) {
    install_handlers();
    install_signal_stack();
    Watchdog watchdog;
    sigjmp_buf here;
    if (sigsetjmp(here, 1)) {
        way_out = nullptr;
        std::lock_guard<std::mutex> lock(sim().mutex);
        throw explain(caught, caught_at);
    }
    way_out = &here;
    try {
        body();
    } catch (...) {
        way_out = nullptr;
        throw;
    }
    way_out = nullptr;
}

}  // namespace cudasim
