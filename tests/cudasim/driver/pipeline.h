// Asynchronous copies into shared memory, of 4 to 16 bytes; see pipeline.cpp.
#pragma once
#include <cstddef>

namespace cudasim {

void begin_pipelines();  // of a block
void pipeline_copy(void* to, const void* from, size_t bytes, size_t zeros);
void pipeline_commit();
void pipeline_wait(size_t left);

}  // namespace cudasim
