// PyCUDA's extension does not load unless these exist. They say that they are not supported, whatever they are given,
// so they are declared without their arguments and the header that declares them stays out.
constexpr int CUDA_ERROR_NOT_SUPPORTED = 801;

#define NOT_SUPPORTED(name) extern "C" int name() { return CUDA_ERROR_NOT_SUPPORTED; }

NOT_SUPPORTED(cuArray3DCreate_v2) NOT_SUPPORTED(cuArray3DGetDescriptor_v2) NOT_SUPPORTED(cuArrayCreate_v2)
NOT_SUPPORTED(cuArrayDestroy) NOT_SUPPORTED(cuArrayGetDescriptor_v2) NOT_SUPPORTED(cuCtxAttach)
NOT_SUPPORTED(cuCtxCreate_v4) NOT_SUPPORTED(cuCtxDetach) NOT_SUPPORTED(cuCtxDisablePeerAccess)
NOT_SUPPORTED(cuCtxEnablePeerAccess) NOT_SUPPORTED(cuCtxGetApiVersion) NOT_SUPPORTED(cuCtxGetCacheConfig)
NOT_SUPPORTED(cuCtxGetLimit) NOT_SUPPORTED(cuCtxGetSharedMemConfig) NOT_SUPPORTED(cuCtxSetCacheConfig)
NOT_SUPPORTED(cuCtxSetLimit) NOT_SUPPORTED(cuCtxSetSharedMemConfig) NOT_SUPPORTED(cuDeviceCanAccessPeer)
NOT_SUPPORTED(cuDeviceGetByPCIBusId) NOT_SUPPORTED(cuDeviceGetPCIBusId) 
NOT_SUPPORTED(cuFuncSetCacheConfig) NOT_SUPPORTED(cuFuncSetSharedSize) NOT_SUPPORTED(cuIpcCloseMemHandle)
NOT_SUPPORTED(cuIpcGetEventHandle) NOT_SUPPORTED(cuIpcGetMemHandle) NOT_SUPPORTED(cuIpcOpenEventHandle)
NOT_SUPPORTED(cuIpcOpenMemHandle_v2) NOT_SUPPORTED(cuLaunch) NOT_SUPPORTED(cuLaunchGrid)
NOT_SUPPORTED(cuLaunchGridAsync) NOT_SUPPORTED(cuLinkAddData_v2) NOT_SUPPORTED(cuLinkAddFile_v2)
NOT_SUPPORTED(cuLinkComplete) NOT_SUPPORTED(cuLinkCreate_v2) NOT_SUPPORTED(cuLinkDestroy)
NOT_SUPPORTED(cuMemAllocManaged) NOT_SUPPORTED(cuMemAllocPitch_v2) NOT_SUPPORTED(cuMemGetAddressRange_v2)
NOT_SUPPORTED(cuMemHostGetDevicePointer_v2) NOT_SUPPORTED(cuMemHostGetFlags) NOT_SUPPORTED(cuMemHostRegister_v2)
NOT_SUPPORTED(cuMemHostUnregister) NOT_SUPPORTED(cuMemcpy2DAsync_v2) NOT_SUPPORTED(cuMemcpy2DUnaligned_v2)
NOT_SUPPORTED(cuMemcpy2D_v2) NOT_SUPPORTED(cuMemcpy3DAsync_v2) NOT_SUPPORTED(cuMemcpy3DPeer)
NOT_SUPPORTED(cuMemcpy3DPeerAsync) NOT_SUPPORTED(cuMemcpy3D_v2) NOT_SUPPORTED(cuMemcpyAtoA_v2)
NOT_SUPPORTED(cuMemcpyAtoD_v2) NOT_SUPPORTED(cuMemcpyAtoH_v2) NOT_SUPPORTED(cuMemcpyDtoA_v2)
NOT_SUPPORTED(cuMemcpyHtoA_v2) NOT_SUPPORTED(cuMemcpyPeer) NOT_SUPPORTED(cuMemcpyPeerAsync)
NOT_SUPPORTED(cuMemsetD16Async) NOT_SUPPORTED(cuMemsetD16_v2) NOT_SUPPORTED(cuMemsetD2D16Async)
NOT_SUPPORTED(cuMemsetD2D16_v2) NOT_SUPPORTED(cuMemsetD2D32Async) NOT_SUPPORTED(cuMemsetD2D32_v2)
NOT_SUPPORTED(cuMemsetD2D8Async) NOT_SUPPORTED(cuMemsetD2D8_v2) NOT_SUPPORTED(cuModuleGetGlobal_v2)
NOT_SUPPORTED(cuModuleGetSurfRef) NOT_SUPPORTED(cuModuleGetTexRef) NOT_SUPPORTED(cuModuleLoadData)
NOT_SUPPORTED(cuModuleLoadDataEx) NOT_SUPPORTED(cuParamSetSize) NOT_SUPPORTED(cuParamSetTexRef)
NOT_SUPPORTED(cuParamSetf) NOT_SUPPORTED(cuParamSeti) NOT_SUPPORTED(cuParamSetv) NOT_SUPPORTED(cuProfilerInitialize)
NOT_SUPPORTED(cuProfilerStart) NOT_SUPPORTED(cuProfilerStop) NOT_SUPPORTED(cuStreamAttachMemAsync)
NOT_SUPPORTED(cuSurfRefGetArray) NOT_SUPPORTED(cuSurfRefSetArray) NOT_SUPPORTED(cuTexRefCreate)
NOT_SUPPORTED(cuTexRefDestroy) NOT_SUPPORTED(cuTexRefGetAddressMode) NOT_SUPPORTED(cuTexRefGetAddress_v2)
NOT_SUPPORTED(cuTexRefGetArray) NOT_SUPPORTED(cuTexRefGetFilterMode) NOT_SUPPORTED(cuTexRefGetFlags)
NOT_SUPPORTED(cuTexRefGetFormat) NOT_SUPPORTED(cuTexRefSetAddress2D_v3) NOT_SUPPORTED(cuTexRefSetAddressMode)
NOT_SUPPORTED(cuTexRefSetAddress_v2) NOT_SUPPORTED(cuTexRefSetArray) NOT_SUPPORTED(cuTexRefSetFilterMode)
NOT_SUPPORTED(cuTexRefSetFlags) NOT_SUPPORTED(cuTexRefSetFormat)

// NVRTC asks the driver beside it for a table, and follows a null pointer where it cannot ask.
NOT_SUPPORTED(cuGetExportTable)
