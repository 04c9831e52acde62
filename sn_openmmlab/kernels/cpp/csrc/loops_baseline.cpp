// The loops for every processor of the compiler's target.

#include "loops.h"

namespace sn_openmmlab {
namespace baseline {

#include "loops.inc"

extern const Loops<float> float_loops = kLoops<float>;
extern const Loops<double> double_loops = kLoops<double>;
extern const Loops<Half> half_loops = kLoops<Half>;
extern const Loops<BFloat16> bfloat16_loops = kLoops<BFloat16>;

}  // namespace baseline
}  // namespace sn_openmmlab
