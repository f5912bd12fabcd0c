// One dot product-add on the GPU at hand: d[0,0] = c[0,0] + sum over k of a[0,k] * b[k,0], by inline PTX.
// Written by mmaformal.  Types: fp16 × fp16 + fp32 → fp32.
//
// Compile and run:
//     nvcc -arch=sm_80 -o case case.cu && ./case
//
// The instructions, and what they need:
//     mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
//         compute capability 8.0 or later (-arch=sm_80)
//
// Exit code: 0 if the GPU agrees with one of the models, 1 if with none, 2 if nothing could be run.

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <cuda_runtime.h>

// The case, as bit patterns.
enum { K = 16 };
static const uint16_t case_a[] = {
    0x3c00, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000,
    0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000,
};
static const uint16_t case_b[] = {
    0x3c00, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000,
    0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000,
};
static const uint32_t case_c = 0xb3000000;

// mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
// PTX ISA: "Matrix Fragments for mma.m16n8k16 with floating point type".
namespace mma_0 {

enum { M = 16, N = 8, K = 16 };
enum { STEP = 16 };  // of K, by one instruction; the next one continues on its result

// Row and column, in its matrix, of the i-th element that a lane holds.
__device__ int a_row(int lane, int i) { return (lane >> 2) + 8 * ((i >> 1) & 1); }
__device__ int a_col(int lane, int i) { return 2 * (lane & 3) + (i & 1) + 8 * (i >> 2); }
__device__ int b_row(int lane, int i) { return 2 * (lane & 3) + (i & 1) + 8 * (i >> 1); }
__device__ int b_col(int lane, int i) { return lane >> 2; }
__device__ int c_row(int lane, int i) { return (lane >> 2) + 8 * (i >> 1); }
__device__ int c_col(int lane, int i) { return 2 * (lane & 3) + (i & 1); }
__device__ int d_row(int lane, int i) { return (lane >> 2) + 8 * (i >> 1); }
__device__ int d_col(int lane, int i) { return 2 * (lane & 3) + (i & 1); }

__global__ void kernel(const uint16_t *A, const uint16_t *B, const uint32_t *C, uint32_t *D, int *ran) {
#if __CUDA_ARCH__ >= 800
    const int lane = threadIdx.x;
    float c[4] = {};
    for (int i = 0; i < 4; ++i)
        c[i] = __uint_as_float(C[c_row(lane, i) * N + c_col(lane, i)]);
    float d[4];
    for (int k = 0; k < K; k += STEP) {
        uint32_t a[4] = {};
        for (int i = 0; i < 8; ++i)
            a[i / 2] |= uint32_t(A[a_row(lane, i) * K + k + a_col(lane, i)]) << (16 * (i % 2));
        uint32_t b[2] = {};
        for (int i = 0; i < 4; ++i)
            b[i / 2] |= uint32_t(B[(k + b_row(lane, i)) * N + b_col(lane, i)]) << (16 * (i % 2));
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                     "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                     "{%10, %11, %12, %13};"
                     : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]),
                       "r"(b[0]), "r"(b[1]),
                       "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
    }
    for (int i = 0; i < 4; ++i)
        D[d_row(lane, i) * N + d_col(lane, i)] = __float_as_uint(d[i]);
    *ran = 1;
#endif
}

}  // namespace mma_0

struct Mma {
    const char *ptx, *needs, *suffix, *note;
    int first, last;  // compute capabilities that have it, 80 for 8.0
    int m, n;
    void (*kernel)(const uint16_t *A, const uint16_t *B, const uint32_t *C, uint32_t *D, int *ran);
};

static const Mma mmas[] = {
    {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
     "compute capability 8.0 or later (-arch=sm_80)", "",
     nullptr,
     80, 9999, mma_0::M, mma_0::N, mma_0::kernel},
};

struct Model {
    const char *name;
    int mma;       // which of mmas
    uint64_t d;    // what it predicts
    bool any_nan;  // it predicts a NaN, but not which
};

static const Model models[] = {
    {"ampere HMMA.16816.F32", 0, 0x3f800000, false},
    {"hopper HMMA.16816.F32", 0, 0x3f7fffff, false},
};

static const char *advice(cudaError_t error) {
    switch (error) {
    case cudaErrorNoDevice:
        return "No NVIDIA GPU is visible: look at nvidia-smi and at CUDA_VISIBLE_DEVICES.";
    case cudaErrorInsufficientDriver:
        return "The NVIDIA driver is missing or older than this nvcc: update it, or use an older nvcc.";
    case cudaErrorNoKernelImageForDevice:
        return "This build is for other GPUs: compile again with this one's -arch (for 7.5, sm_75).";
    case cudaErrorMemoryAllocation:
        return "The GPU has no memory left: wait, or choose another one with CUDA_VISIBLE_DEVICES.";
    default:
        return "See whether nvidia-smi works and names a CUDA version no older than nvcc's, then run again.";
    }
}

static void check(cudaError_t error, const char *call) {
    if (error == cudaSuccess) return;
    fflush(stdout);
    fprintf(stderr, "%s failed: %s (%s)\n", call, cudaGetErrorString(error), cudaGetErrorName(error));
    fprintf(stderr, "%s\n", advice(error));
    exit(2);
}
#define CHECK(call) check(call, #call)

template <typename T>
static T *on_gpu(const std::vector<T> &host) {
    T *gpu = nullptr;
    CHECK(cudaMalloc(&gpu, host.size() * sizeof(T)));
    CHECK(cudaMemcpy(gpu, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
    return gpu;
}

// Runs one instruction (or chain) and sets *d to d[0,0]; false if this build holds no code for it.
static bool run(const Mma &mma, uint32_t *d) {
    // Row by row: A is m x K, B is K x n, C and D are m x n.  For other matrices, fill these in.
    std::vector<uint16_t> A(mma.m * K);
    std::vector<uint16_t> B(K * mma.n);
    std::vector<uint32_t> C(mma.m * mma.n);
    std::vector<uint32_t> D(mma.m * mma.n);
    std::vector<int> ran(1);
    for (int k = 0; k < K; ++k) {
        A[k] = case_a[k];
        B[k * mma.n] = case_b[k];
    }
    C[0] = case_c;

    uint16_t *gpu_A = on_gpu(A);
    uint16_t *gpu_B = on_gpu(B);
    uint32_t *gpu_C = on_gpu(C);
    uint32_t *gpu_D = on_gpu(D);
    int *gpu_ran = on_gpu(ran);
    mma.kernel<<<1, 32>>>(gpu_A, gpu_B, gpu_C, gpu_D, gpu_ran);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(D.data(), gpu_D, D.size() * sizeof(uint32_t), cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(ran.data(), gpu_ran, sizeof(int), cudaMemcpyDeviceToHost));
    CHECK(cudaFree(gpu_A));
    CHECK(cudaFree(gpu_B));
    CHECK(cudaFree(gpu_C));
    CHECK(cudaFree(gpu_D));
    CHECK(cudaFree(gpu_ran));
    *d = D[0];
    return ran[0];
}

enum { EXPONENT_BITS = 8, FRACTION_BITS = 23, BIAS = 127 };  // of d

static double value(uint64_t code) {
    const int top = (1 << EXPONENT_BITS) - 1;
    const int exponent = int(code >> FRACTION_BITS) & top;
    const uint64_t fraction = code & ((uint64_t(1) << FRACTION_BITS) - 1);
    const double sign = (code >> (EXPONENT_BITS + FRACTION_BITS)) & 1 ? -1 : 1;
    if (exponent == top) return fraction ? NAN : sign * INFINITY;
    if (exponent == 0) return sign * ldexp(double(fraction), 1 - BIAS - FRACTION_BITS);
    return sign * ldexp(double(fraction | uint64_t(1) << FRACTION_BITS), exponent - BIAS - FRACTION_BITS);
}

int main() {
    cudaDeviceProp gpu;
    CHECK(cudaGetDeviceProperties(&gpu, 0));
    printf("GPU: %s, compute capability %d.%d\n", gpu.name, gpu.major, gpu.minor);
    const int capability = 10 * gpu.major + gpu.minor;

    bool any_ran = false;
    std::string agrees;
    for (int i = 0; i < int(sizeof mmas / sizeof *mmas); ++i) {
        const Mma &mma = mmas[i];
        printf("%s\n", mma.ptx);
        if (mma.note) printf("    (%s)\n", mma.note);
        if (capability < mma.first || capability > mma.last) {
            printf("    not run: it needs %s\n", mma.needs);
            continue;
        }
        uint32_t d;
        if (!run(mma, &d)) {
            printf("    not run: this build has no code for it, compile again with -arch=sm_%d%s\n",
                   capability, mma.suffix);
            continue;
        }
        any_ran = true;
        printf("    d[0,0] = 0x%08llx (%a)\n", static_cast<unsigned long long>(d), value(d));
        for (const Model &model : models) {
            if (model.mma != i) continue;
            const bool same = model.any_nan ? std::isnan(value(d)) : d == model.d;
            const unsigned long long predicted = model.d;
            printf("    %s: ", model.name);
            if (model.any_nan)
                printf("some NaN, ");
            else
                printf("0x%08llx (%a), ", predicted, value(predicted));
            printf(same ? "agrees\n" : "differs\n");
            if (same) agrees += std::string(agrees.empty() ? "" : " and ") + model.name;
        }
    }
    if (!any_ran) {
        printf("Nothing could be run.\n");
        return 2;
    }
    if (agrees.empty()) {
        printf("The GPU agrees with none of the models whose instruction was run.\n");
        return 1;
    }
    printf("The GPU agrees with %s.\n", agrees.c_str());
    return 0;
}
