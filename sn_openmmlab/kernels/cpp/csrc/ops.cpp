// The operators of torch.ops.sn_openmmlab.

#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "loops.h"
#include "stages.h"
#include "whole.h"

namespace sn_openmmlab {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

const at::Tensor& or_undefined(const MaybeTensor& tensor) {
  static const at::Tensor undefined;
  return tensor.has_value() ? *tensor : undefined;
}

MaybeTensor or_none(const at::Tensor& tensor) {
  return tensor.defined() ? MaybeTensor(tensor) : std::nullopt;
}

template <class Signature>
auto operator_named(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
}

// Whether a gradient has to be an expression of torch's operators: it is differentiated again, or
// it carries more than numbers.
bool needs_expression(const at::Tensor& dy) {
  using Key = c10::DispatchKey;
  static const c10::DispatchKeySet wrapped(
      {Key::Batched, Key::FuncTorchBatched, Key::FuncTorchGradWrapper, Key::Functionalize,
       Key::FuncTorchDynamicLayerFrontMode, Key::Python, Key::PythonDispatcher});
  const auto local = c10::impl::tls_local_dispatch_key_set();
  const auto keys = (dy.key_set() | local.included_) - local.excluded_;
  return c10::GradMode::is_enabled() || keys.has_any(wrapped) || dy._fw_grad(0).defined();
}

// What backward needs to know besides tensors.
struct Settings {
  Settings(at::IntArrayRef scopes, std::int64_t num_groups, std::int64_t correction, double eps,
           bool instance_variance, bool batch_is_given)
      : scopes(scopes.vec()),
        num_groups(num_groups),
        correction(correction),
        eps(eps),
        instance_variance(instance_variance),
        batch_is_given(batch_is_given) {}

  explicit Settings(AutogradContext* ctx) : eps(ctx->saved_data["eps"].toDouble()) {
    const auto numbers = ctx->saved_data["numbers"].toIntVector();
    num_groups = numbers[0];
    correction = numbers[1];
    instance_variance = numbers[2] != 0;
    batch_is_given = numbers[3] != 0;
    scopes.assign(numbers.begin() + 4, numbers.end());
  }

  void save(AutogradContext* ctx) const {
    std::vector<std::int64_t> numbers{num_groups, correction, instance_variance, batch_is_given};
    numbers.insert(numbers.end(), scopes.begin(), scopes.end());
    ctx->saved_data["numbers"] = numbers;
    ctx->saved_data["eps"] = eps;
  }

  std::vector<std::int64_t> scopes;
  std::int64_t num_groups;
  std::int64_t correction;
  double eps;
  bool instance_variance;
  bool batch_is_given;
};

class SwitchNormFunction : public torch::autograd::Function<SwitchNormFunction> {
 public:
  static variable_list forward(AutogradContext* ctx, const at::Tensor& x, const MaybeTensor& weight,
                               const MaybeTensor& bias, const at::Tensor& mean_weight,
                               const at::Tensor& var_weight, const MaybeTensor& running_mean,
                               const MaybeTensor& running_var, const MaybeTensor& num_batches,
                               std::optional<double> momentum, bool training,
                               at::IntArrayRef scopes, std::int64_t num_groups,
                               std::int64_t correction, double eps, bool instance_variance) {
    static const auto op =
        operator_named<decltype(sn_openmmlab::forward)>("sn_openmmlab::switch_norm_forward");
    at::AutoDispatchBelowADInplaceOrView below;
    const auto [y, tables, batch] =
        op.call(x, weight, bias, mean_weight, var_weight, running_mean, running_var, num_batches,
                momentum, training, scopes, num_groups, correction, eps, instance_variance);
    ctx->save_for_backward(
        {x, or_undefined(weight), or_undefined(bias), mean_weight, var_weight, tables, batch});
    const bool given = running_mean.has_value() && !training;
    Settings(scopes, num_groups, correction, eps, instance_variance, given).save(ctx);
    ctx->set_materialize_grads(false);
    ctx->mark_non_differentiable({batch});
    return {y, batch};
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    variable_list results(kArguments);
    const at::Tensor& dy = gradients[0];
    if (!dy.defined()) return results;
    const variable_list saved = ctx->get_saved_variables();
    std::array<bool, 5> wanted;
    std::size_t edge = 0;  // arguments that are none have no edge in the graph
    for (std::size_t k = 0; k < wanted.size(); ++k) {
      wanted[k] = saved[k].defined() && ctx->needs_input_grad(edge++);
    }
    const Settings settings(ctx);
    const auto found = needs_expression(dy) ? expressions(settings, saved, dy, wanted)
                                            : numbers(settings, saved, dy, wanted);
    std::copy(found.begin(), found.end(), results.begin());
    return results;
  }

 private:
  static constexpr std::size_t kArguments = 15;  // of forward, besides the context

  static variable_list numbers(const Settings& settings, const variable_list& saved,
                               const at::Tensor& dy, std::array<bool, 5> wanted) {
    static const auto op =
        operator_named<decltype(sn_openmmlab::backward)>("sn_openmmlab::switch_norm_backward");
    at::AutoDispatchBelowADInplaceOrView below;
    const auto [dx, d_weight, d_bias, d_mean_weight, d_var_weight] =
        op.call(dy, saved[0], or_none(saved[1]), or_none(saved[2]), saved[3], saved[4], saved[5],
                saved[6], settings.batch_is_given, settings.scopes, settings.num_groups,
                settings.correction, wanted);
    return {dx, d_weight, d_bias, d_mean_weight, d_var_weight};
  }

  // By the plain expression, which Python registers.
  static variable_list expressions(const Settings& settings, const variable_list& saved,
                                   const at::Tensor& dy, std::array<bool, 5> wanted) {
    using Signature = std::vector<at::Tensor>(
        const at::Tensor&, const at::Tensor&, const MaybeTensor&, const MaybeTensor&,
        const at::Tensor&, const at::Tensor&, const MaybeTensor&, at::IntArrayRef, std::int64_t,
        std::int64_t, double, bool, std::array<bool, 5>);
    static const auto op = operator_named<Signature>("sn_openmmlab::switch_norm_expressions");
    const bool given = settings.batch_is_given && saved[6].numel() > 0;
    const auto found = op.call(
        dy, saved[0], or_none(saved[1]), or_none(saved[2]), saved[3], saved[4],
        given ? MaybeTensor(saved[6]) : std::nullopt, settings.scopes, settings.num_groups,
        settings.correction, settings.eps, settings.instance_variance, wanted);
    variable_list results(wanted.size());
    auto next = found.begin();
    for (std::size_t k = 0; k < wanted.size(); ++k) {
      if (wanted[k]) results[k] = *next++;
    }
    return results;
  }
};

std::tuple<at::Tensor, at::Tensor> fused_switch_norm(
    const at::Tensor& x, const MaybeTensor& weight, const MaybeTensor& bias,
    const at::Tensor& mean_weight, const at::Tensor& var_weight, const MaybeTensor& running_mean,
    const MaybeTensor& running_var, const MaybeTensor& num_batches, std::optional<double> momentum,
    bool training, at::IntArrayRef scopes, std::int64_t num_groups, std::int64_t correction,
    double eps, bool instance_variance) {
  const auto outputs = SwitchNormFunction::apply(
      x, weight, bias, mean_weight, var_weight, running_mean, running_var, num_batches, momentum,
      training, scopes, num_groups, correction, eps, instance_variance);
  return {outputs[0], outputs[1]};
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(sn_openmmlab, m) {
  m.def("instruction_set() -> str", [] { return std::string(instruction_set()); });
  m.def(
      "observe(Tensor x, int correction, bool instance_variance) -> (Tensor instances, Tensor "
      "batch)");
  m.def(
      "normalize(Tensor x, Tensor instances, Tensor? batch, Tensor? weight, Tensor? bias, Tensor "
      "mean_weight, Tensor var_weight, int[] scopes, int num_groups, float eps) -> (Tensor y, "
      "Tensor mixed)");
  m.def(
      "sum_gradients(Tensor dy, Tensor x, Tensor mixed, Tensor? weight) -> (Tensor sums, Tensor "
      "channels)");
  m.def(
      "input_gradients(Tensor dy, Tensor x, Tensor sums, Tensor instances, Tensor mixed, Tensor? "
      "batch, Tensor? batch_gradients, Tensor? weight, Tensor mean_weight, Tensor var_weight, "
      "int[] scopes, int num_groups, int correction, bool wants_x) -> (Tensor dx, Tensor "
      "d_mean_weight, Tensor d_var_weight)");
  m.def(
      "fused_switch_norm(Tensor x, Tensor? weight, Tensor? bias, Tensor mean_weight, Tensor "
      "var_weight, Tensor(a!)? running_mean, Tensor(b!)? running_var, Tensor(c!)? num_batches, "
      "float? momentum, bool training, int[] scopes, int num_groups, int correction, float eps, "
      "bool instance_variance) -> (Tensor y, Tensor batch)");
  m.def(
      "switch_norm_forward(Tensor x, Tensor? weight, Tensor? bias, Tensor mean_weight, Tensor "
      "var_weight, Tensor(a!)? running_mean, Tensor(b!)? running_var, Tensor(c!)? num_batches, "
      "float? momentum, bool training, int[] scopes, int num_groups, int correction, float eps, "
      "bool instance_variance) -> (Tensor y, Tensor tables, Tensor batch)");
  m.def(
      "switch_norm_backward(Tensor dy, Tensor x, Tensor? weight, Tensor? bias, Tensor mean_weight, "
      "Tensor var_weight, Tensor tables, Tensor batch, bool batch_is_given, int[] scopes, int "
      "num_groups, int correction, bool[5] wanted) -> (Tensor dx, Tensor d_weight, Tensor d_bias, "
      "Tensor d_mean_weight, Tensor d_var_weight)");
}

TORCH_LIBRARY_IMPL(sn_openmmlab, CPU, m) {
  m.impl("observe", observe);
  m.impl("normalize", normalize);
  m.impl("sum_gradients", sum_gradients);
  m.impl("input_gradients", input_gradients);
  m.impl("switch_norm_forward", forward);
  m.impl("switch_norm_backward", backward);
}

TORCH_LIBRARY_IMPL(sn_openmmlab, CompositeImplicitAutograd, m) {
  m.impl("fused_switch_norm", fused_switch_norm);
}

}  // namespace sn_openmmlab
