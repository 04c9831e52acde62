// The loops for x86 processors with AVX2, FMA and F16C. Nothing here runs on others.

#include "loops.h"

#if defined(SN_AVX2)

#include <immintrin.h>

#pragma GCC target("avx2,fma,f16c")
#define SN_AVX2_CODE

namespace sn_openmmlab {
namespace avx2 {

#include "loops.inc"

extern const Loops<float> float_loops = kLoops<float>;
extern const Loops<double> double_loops = kLoops<double>;
extern const Loops<Half> half_loops = kLoops<Half>;
extern const Loops<BFloat16> bfloat16_loops = kLoops<BFloat16>;

}  // namespace avx2
}  // namespace sn_openmmlab

#endif
