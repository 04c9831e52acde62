#include "steps.h"

#include <ATen/ops/empty.h>

#include <algorithm>

namespace sn_openmmlab {

template <class A>
void fill_instances(const Arranged& x, std::int64_t correction, bool instance_variance,
                    A* instances) {
  const std::int64_t entries = shape_of(x.x).entries();
  if (x.x.numel() == 0) {
    std::fill_n(instances, 2 * entries, A(0));
    return;
  }
  instance_moments(x, correction, instances, instances + entries);
  if (!instance_variance) std::fill_n(instances + entries, entries, A(0));
}

template <class A>
at::Tensor fill_output(const at::Tensor& x, const Arranged& arranged, const A* instances,
                       const A* batch, const A* weight, const A* bias, const Ratios& ratios,
                       const Mixture& mixture, A* mixed) {
  const Shape shape = shape_of(x);
  mix(shape, instances, batch, ratios, mixture, mixed);
  const Output y(x, arranged.x);
  if (x.numel() == 0) return y.result;
  const std::unique_ptr<A[]> scale(new A[shape.entries()]);
  scales(shape, mixed, weight, scale.get());
  const std::vector<A> zeros(bias == nullptr ? shape.channels : 0);
  affine(arranged, y.written, mixed, scale.get(), bias == nullptr ? zeros.data() : bias);
  return y.finish();
}

template <class A>
void fill_sums(const at::Tensor& dy, const Arranged& x, const A* mixed, const A* weight, A* sums,
               A* channels) {
  const Shape shape = shape_of(x.x);
  if (x.x.numel() == 0) {
    std::fill_n(sums, 2 * shape.entries(), A(0));
  } else {
    gradient_sums(dy, x, mixed, sums, sums + shape.entries());
  }
  channel_gradients(shape, sums, mixed, weight, channels);
}

template <class A>
at::Tensor fill_gradients(const at::Tensor& dy, const at::Tensor& x, const Arranged& arranged,
                          const Backward<A>& given, const Ratios& ratios, const Mixture& mixture,
                          bool wants_x, ControlGradients* controls) {
  const std::int64_t entries = given.shape.entries();
  const std::unique_ptr<A[]> tables(new A[3 * entries]);
  A *slope_shift = tables.get(), *scale = slope_shift + 2 * entries;
  *controls = position_gradients(given, ratios, mixture, slope_shift);
  if (!wants_x) return {};
  const Output dx(x, arranged.x);
  if (x.numel() == 0) return dx.result;
  scales(given.shape, given.mixed, given.weight, scale);
  input_gradient(dy, arranged, dx.written, scale, slope_shift, slope_shift + entries);
  return dx.finish();
}

at::Tensor like_control(const std::vector<double>& gradient, const at::Tensor& control) {
  const bool is_float = control.scalar_type() == at::kFloat;
  const auto options = control.options().dtype(is_float ? at::kFloat : at::kDouble);
  const at::Tensor result = at::empty(control.sizes(), options);
  if (is_float) {
    std::copy(gradient.begin(), gradient.end(), data<float>(result));
  } else {
    std::copy(gradient.begin(), gradient.end(), data<double>(result));
  }
  return result.to(control.scalar_type());
}

#define SN_STEPS_OF(A)                                                                            \
  template void fill_instances(const Arranged&, std::int64_t, bool, A*);                          \
  template at::Tensor fill_output(const at::Tensor&, const Arranged&, const A*, const A*,         \
                                  const A*, const A*, const Ratios&, const Mixture&, A*);         \
  template void fill_sums(const at::Tensor&, const Arranged&, const A*, const A*, A*, A*);        \
  template at::Tensor fill_gradients(const at::Tensor&, const at::Tensor&, const Arranged&,       \
                                     const Backward<A>&, const Ratios&, const Mixture&, bool,     \
                                     ControlGradients*);

SN_STEPS_OF(float)
SN_STEPS_OF(double)

}  // namespace sn_openmmlab
