// Turns the type of a kernel into a table entry: how its arguments lie in a launch's buffer, and how to call it.
#pragma once
#include <type_traits>

namespace cudasim {

template <class... Arguments> struct Layout {
    static constexpr size_t count = sizeof...(Arguments);

    struct Table {
        CudasimParameter parameters[count + 1] = {};
        size_t bytes = 0;
    };

    static constexpr Table make() {
        Table table;
        size_t sizes[] = {sizeof(Arguments)..., 0}, aligns[] = {alignof(Arguments)..., 1};
        bool pointers[] = {std::is_pointer_v<Arguments>..., false};
        for (size_t i = 0; i < count; ++i) {
            size_t offset = (table.bytes + aligns[i] - 1) / aligns[i] * aligns[i];
            table.parameters[i] = {offset, sizes[i], pointers[i]};
            table.bytes = offset + sizes[i];
        }
        return table;
    }

    static constexpr Table table = make();
};

template <class Argument> Argument read_argument(const unsigned char* at) {
    // A launch's buffer may lie unaligned; the argument is copied as the device copies it into its constant bank.
    alignas(Argument) unsigned char bytes[sizeof(Argument)];
    __builtin_memcpy(bytes, at, sizeof bytes);
    return *reinterpret_cast<Argument*>(bytes);
}

template <auto kernel, class... Arguments, size_t... index>
void run(const unsigned char* arguments, std::index_sequence<index...>) {
    kernel(read_argument<Arguments>(arguments + Layout<Arguments...>::table.parameters[index].offset)...);
}

template <auto kernel, class... Arguments>
CudasimKernel describe(void (*)(Arguments...), const char* name, unsigned bound, const char* const* functions) {
    using Its = Layout<Arguments...>;
    auto call = [](const unsigned char* arguments) {
        run<kernel, Arguments...>(arguments, std::index_sequence_for<Arguments...>());
    };
    return {name, call, Its::table.parameters, Its::count, Its::table.bytes, bound, functions};
}

}  // namespace cudasim
