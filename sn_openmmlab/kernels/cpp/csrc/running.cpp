#include "running.h"

namespace sn_openmmlab {

namespace {

template <class R, class A>
void move(R* running, const A* fresh, std::int64_t channels, double share) {
  for (std::int64_t c = 0; c < channels; ++c) {
    const double before = static_cast<double>(running[c]), now = static_cast<double>(fresh[c]);
    // At a share of 1 nothing is kept, not even an infinity.
    const double kept = share == 1 ? 0 : before * (1 - share);
    running[c] = static_cast<R>(kept + now * share);
  }
}

template <class A>
void move_towards(const at::Tensor& running, const A* fresh, double share) {
  const std::int64_t channels = running.numel();
  if (running.scalar_type() == at::kFloat && running.is_contiguous()) {
    move(data<float>(running), fresh, channels, share);
    return;
  }
  const at::Tensor wide = running.to(at::kDouble, /*non_blocking=*/false, /*copy=*/true);
  move(data<double>(wide), fresh, channels, share);
  running.copy_(wide);
}

// Let autograd see that a tensor changes: operators that are called below it do not. Raises torch's
// usual error if the tensor may not change.
void mark_changed(const at::Tensor& tensor) { tensor.unsafeGetTensorImpl()->bump_version(); }

}  // namespace

void move_running(const at::Tensor& running_mean, const at::Tensor& running_var,
                  const at::Tensor& num_batches, std::optional<double> momentum,
                  const at::Tensor& batch) {
  check_vector("running_mean", running_mean, batch.size(1));
  check_vector("running_var", running_var, batch.size(1));
  for (const at::Tensor& tensor : {running_mean, running_var, num_batches}) mark_changed(tensor);
  num_batches.add_(1);
  const double share = momentum ? *momentum : 1.0 / num_batches.item<double>();
  for_statistics(batch.scalar_type(), [&](auto number) {
    using A = decltype(number);
    const A* moments = data<A>(batch);
    move_towards(running_mean, moments, share);
    move_towards(running_var, moments + batch.size(1), share);
  });
}

}  // namespace sn_openmmlab
