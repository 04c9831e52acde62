// Choose the loops for the processor at hand, once per process.

#include <cstdlib>
#include <string_view>

#include "loops.h"

namespace sn_openmmlab {

#define SN_DECLARE_LOOPS                  \
  extern const Loops<float> float_loops;   \
  extern const Loops<double> double_loops; \
  extern const Loops<Half> half_loops;     \
  extern const Loops<BFloat16> bfloat16_loops;

namespace baseline {
SN_DECLARE_LOOPS
}

#if defined(SN_AVX2)
namespace avx2 {
SN_DECLARE_LOOPS
}
#endif

namespace {

// As for torch's own loops, the environment variable ATEN_CPU_CAPABILITY=default asks for the
// baseline.
bool is_asked_for_baseline() {
  const char* asked = std::getenv("ATEN_CPU_CAPABILITY");
  return asked != nullptr && std::string_view(asked) == "default";
}

bool has_avx2() {
#if defined(SN_AVX2)
  static const bool found = !is_asked_for_baseline() && __builtin_cpu_supports("avx2") &&
                            __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  return found;
#else
  return false;
#endif
}

}  // namespace

#if defined(SN_AVX2)
#define SN_CHOOSE(name) (has_avx2() ? avx2::name : baseline::name)
#else
#define SN_CHOOSE(name) baseline::name
#endif

template <>
const Loops<float>& loops<float>() {
  return SN_CHOOSE(float_loops);
}

template <>
const Loops<double>& loops<double>() {
  return SN_CHOOSE(double_loops);
}

template <>
const Loops<Half>& loops<Half>() {
  return SN_CHOOSE(half_loops);
}

template <>
const Loops<BFloat16>& loops<BFloat16>() {
  return SN_CHOOSE(bfloat16_loops);
}

const char* instruction_set() { return has_avx2() ? "avx2" : "baseline"; }

}  // namespace sn_openmmlab
