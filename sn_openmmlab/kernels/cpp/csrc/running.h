// The running statistics of 'bn'.

#pragma once

#include <optional>

#include "types.h"

namespace sn_openmmlab {

// Count a batch, and move both running statistics, (C,), towards its moments, (2, C), by a share:
// `momentum`, or one over the number of batches where it is none.
void move_running(const at::Tensor& running_mean, const at::Tensor& running_var,
                  const at::Tensor& num_batches, std::optional<double> momentum,
                  const at::Tensor& batch);

}  // namespace sn_openmmlab
