// Modules: shared objects made by the nvcc stand-in, each loaded from a copy, so that its variables are its own.
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

#include "sim.h"

namespace cudasim {
namespace {

using Bytes = std::vector<char>;

// A loader is given an address and no size; the table of sections is the last thing in the file.
size_t image_size(const void* image) {
    const auto* header = static_cast<const ElfW(Ehdr)*>(image);
    if (memcmp(header->e_ident, ELFMAG, SELFMAG)) fail(CUDA_ERROR_INVALID_IMAGE);
    return header->e_shoff + size_t{header->e_shentsize} * header->e_shnum;
}

void* open_copy(const char* image, size_t bytes) {
    int file = memfd_create("cudasim-module", MFD_CLOEXEC);
    if (file < 0) fail(CUDA_ERROR_OUT_OF_MEMORY);
    for (size_t at = 0; at < bytes;) {
        ssize_t written = write(file, image + at, bytes - at);
        if (written <= 0) break;
        at += static_cast<size_t>(written);
    }
    void* library = dlopen(text("/proc/self/fd/%d", file).c_str(), RTLD_NOW | RTLD_LOCAL);
    // The file stays open: the loader takes a second library under the same path for the first.
    if (!library) {
        problem("module", dlerror());
        fail(CUDA_ERROR_INVALID_IMAGE);
    }
    return library;
}

void refuse_foreign(const CudasimImage* image) {
    if (!image || image->magic != CUDASIM_MAGIC) fail(CUDA_ERROR_INVALID_IMAGE);
    int driver = 0, capability = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) * 10 +
                                 attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    cuDriverGetVersion(&driver);
    if (image->toolkit > driver) fail(CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
    bool runs = image->architecture <= capability && (image->portable || image->architecture / 10 == capability / 10);
    if (!runs) fail(CUDA_ERROR_NO_BINARY_FOR_GPU);
}

// The function of a static variable's symbol, when the kernel may call it. Names are all there is to tell by; the variable's
// own may be that of another function.
const char* owner(const char* symbol, const CudasimKernel& kernel) {
    const std::string before(symbol, strrchr(symbol, 'E'));
    for (const char* const* function = kernel.functions; *function; ++function)
        if (before.find(*function) != std::string::npos) return *function;
    return nullptr;
}

void add_shared(Function& function, const char* symbol, unsigned char* at, size_t bytes) {
    const char* of = owner(symbol, *function.kernel);
    if (!of) return;
    function.shared.emplace_back(at, bytes);
    // A kernel uses one instance of a template, and which one is not known here: the largest counts.
    size_t& counted = function.largest[std::string(of) + strrchr(symbol, 'E')];
    function.static_shared += bytes > counted ? bytes - counted : 0;
    counted = std::max(counted, bytes);
}

// Static variables of functions are the kernels' __shared__ ones: _ZZ<function>E<name>.
void find_shared(Module& module, const Bytes& image) {
    const auto* header = reinterpret_cast<const ElfW(Ehdr)*>(image.data());
    const auto* sections = reinterpret_cast<const ElfW(Shdr)*>(image.data() + header->e_shoff);
    struct link_map* map = nullptr;
    dlinfo(module.library, RTLD_DI_LINKMAP, &map);
    for (int i = 0; i < header->e_shnum; ++i) {
        if (sections[i].sh_type != SHT_SYMTAB) continue;
        const auto* symbols = reinterpret_cast<const ElfW(Sym)*>(image.data() + sections[i].sh_offset);
        const char* names = image.data() + sections[sections[i].sh_link].sh_offset;
        for (size_t at = 0; at < sections[i].sh_size / sizeof *symbols; ++at) {
            const ElfW(Sym)& symbol = symbols[at];
            const char* name = names + symbol.st_name;
            bool variable = (symbol.st_info & 15) == STT_OBJECT && symbol.st_shndx < header->e_shnum &&
                            (sections[symbol.st_shndx].sh_flags & SHF_WRITE) && !strncmp(name, "_ZZ", 3);
            if (!variable) continue;
            auto* address = reinterpret_cast<unsigned char*>(map->l_addr + symbol.st_value);
            for (auto& [key, function] : module.functions) add_shared(*function, name, address, symbol.st_size);
        }
    }
}

Module* load(Context& context, Bytes image) {
    auto module = std::make_unique<Module>();
    module->context = &context;
    module->library = open_copy(image.data(), image.size());
    module->image = static_cast<const CudasimImage*>(dlsym(module->library, "cudasim_image"));
    try {
        refuse_foreign(module->image);
    } catch (const Failure&) {
        dlclose(module->library);
        throw;
    }
    for (size_t i = 0; i < module->image->kernel_count; ++i) {
        const CudasimKernel& kernel = module->image->kernels[i];
        module->functions[kernel.name].reset(new Function{module.get(), &kernel});
    }
    find_shared(*module, image);
    return module.release();
}

Module& module_of(CUmodule handle) {
    auto* module = reinterpret_cast<Module*>(handle);
    if (!module || !module->live) fail(CUDA_ERROR_INVALID_HANDLE);
    return *module;
}

}  // namespace
}  // namespace cudasim

using namespace cudasim;

CUresult cuModuleLoad(CUmodule* out, const char* path) {
    return call(MODULE, [&](Context& context) {
        std::ifstream file(path, std::ios::binary);
        if (!file) fail(CUDA_ERROR_FILE_NOT_FOUND);
        Bytes image{std::istreambuf_iterator<char>(file), {}};
        if (image.size() < sizeof(ElfW(Ehdr))) fail(CUDA_ERROR_INVALID_IMAGE);
        image_size(image.data());
        *out = reinterpret_cast<CUmodule>(load(context, std::move(image)));
    });
}

CUresult cuModuleUnload(CUmodule handle) {
    return call(OTHER, [&](Context&) {
        Module& module = module_of(handle);
        wait_for(*module.context);
        module.live = false;  // its code stays mapped: addresses in old messages keep their meaning
    });
}

CUresult cuModuleGetFunction(CUfunction* out, CUmodule handle, const char* name) {
    return call(OTHER, [&](Context&) {
        Module& module = module_of(handle);
        auto found = module.functions.find(name);
        // Without extern "C" the plain name is in the table and not among the symbols, as on a device.
        if (found == module.functions.end() || !dlsym(module.library, name)) fail(CUDA_ERROR_NOT_FOUND);
        *out = reinterpret_cast<CUfunction>(found->second.get());
    });
}
