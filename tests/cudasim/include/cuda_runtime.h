// The built-ins are there already; kernels that name this header find it.
