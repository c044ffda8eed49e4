#include "bench_cases.h"

#include <fmt/format.h>

#include <array>
#include <memory>

#include "polyhead/core/profile.h"
#include "polyhead/kernels/bf16.h"
#include "polyhead/kernels/gemm.h"
#include "polyhead/ops/attention.h"
#include "polyhead/ops/cross_entropy.h"
#include "polyhead/ops/dropout.h"
#include "polyhead/ops/layer_norm.h"
#include "polyhead/ops/linear.h"
#include "polyhead/train/optimizer.h"

namespace polyhead::tools {
namespace {

using Call = std::function<void()>;

struct Projection {
  std::int64_t in, out;
};
constexpr Projection projections[] = {{128, 128}, {128, 256}, {256, 1024}, {512, 2048}};
constexpr Projection output_projection{128, 10000};
constexpr std::int64_t case_tokens = 4096;
constexpr double dropout = 0.1;

/// Numbers in [−0.5, 0.5) that do not repeat within a row.
Tensor numbers(Arena& arena, const Shape& shape, DType dtype = DType::f32) {
  constexpr std::int64_t period = 65521;
  const Tensor values = arena.tensor(shape, DType::f32);
  auto* x = values.as<float>();
  for (std::int64_t i = 0; i < values.size(); ++i)
    x[i] = static_cast<float>(i * 7919 % period) / static_cast<float>(period) - 0.5F;
  if (dtype == DType::f32) return values;
  const Tensor rounded = arena.tensor(shape, dtype);
  kernels::to_bf16(values.span<float>(), rounded.span<BFloat16>());
  return rounded;
}

// ---- ops

template <class Op, std::size_t... I>
Call forward_call(Workspace& w, const Op& op, const std::array<Tensor, sizeof...(I)>& in,
                  std::index_sequence<I...>) {
  const Tensor y = w.activations.tensor(op.shape(in[I]...), DType::f32);
  return [&w, op, in, y] {
    const ArenaScope scope(w.activations);
    op.forward(w.exec, in[I]..., y);
  };
}

/// Gradients of all inputs that are there.
template <class Op, std::size_t... I>
Call backward_call(Workspace& w, const Op& op, const std::array<Tensor, sizeof...(I)>& in,
                   std::index_sequence<I...>) {
  const Tensor y = w.activations.tensor(op.shape(in[I]...), DType::f32);
  const auto saved = op.forward(w.exec, in[I]..., y);
  const Tensor dy = numbers(w.activations, y.shape);
  const std::array gradients{Grad{in[I] ? w.activations.zeros(in[I].shape, DType::f32) : Tensor{}}...};
  return [&w, op, in, saved, dy, gradients] {
    const ArenaScope scope(w.activations);
    op.backward(w.exec, saved, dy, in[I]..., gradients[I]...);
  };
}

template <std::size_t N, class Op>
Call call(Workspace& w, Pass pass, const Op& op, const std::array<Tensor, N>& in) {
  const auto indices = std::make_index_sequence<N>{};
  return pass == Pass::forward ? forward_call(w, op, in, indices) : backward_call(w, op, in, indices);
}

constexpr Pass passes[] = {Pass::forward, Pass::backward};

/// As many sentences of `length` tokens as `case_tokens` hold.
Segments sentences(Arena& arena, std::int64_t length) {
  const auto count = static_cast<std::size_t>(case_tokens / length);
  auto* spans = arena.allocate<Segment>(count);
  for (std::size_t i = 0; i < count; ++i)
    spans[i] = {static_cast<std::int32_t>(i) * static_cast<std::int32_t>(length),
                static_cast<std::int32_t>(length)};
  return {{spans, count}, 0};
}

// ---- the measurements

void add_gemm(std::vector<OpCase>& cases, DType dtype, std::int64_t rows, Projection p) {
  using kernels::Transpose;
  const auto add = [&](const char* product, Transpose ta, Transpose tb, const Shape& a, const Shape& b,
                       const Shape& c, bool accumulate) {
    cases.push_back({fmt::format("gemm/{}/{}/{}x{}x{}", name(dtype), product, rows, p.in, p.out),
                     2.0 * static_cast<double>(rows * p.in * p.out), 0, [=](Workspace& w) -> Call {
                       const Tensor ma = numbers(w.activations, a, dtype),
                                    mb = numbers(w.activations, b, dtype),
                                    mc = w.activations.zeros(c, DType::f32);
                       return [=, &w] { kernels::gemm(w.scratch, ta, tb, ma, mb, mc, accumulate); };
                     }});
  };
  const Shape x{rows, p.in}, weight{p.out, p.in}, y{rows, p.out};
  add("y", Transpose::no, Transpose::yes, x, weight, y, false);
  add("dx", Transpose::no, Transpose::no, y, weight, x, true);
  add("dW", Transpose::yes, Transpose::no, y, x, weight, true);
}

void add_linear(std::vector<OpCase>& cases, Projection p) {
  for (const Pass pass : passes)
    cases.push_back({fmt::format("Linear/{}/{}x{}x{}", name(pass), case_tokens, p.in, p.out),
                     (pass == Pass::forward ? 2.0 : 4.0) * static_cast<double>(case_tokens * p.in * p.out), 0,
                     [=](Workspace& w) {
                       Arena& a = w.activations;
                       return call<3>(
                           w, pass, ops::Linear{},
                           {numbers(a, {case_tokens, p.in}), numbers(a, {p.out, p.in}), numbers(a, {p.out})});
                     }});
}

void add_cross_entropy(std::vector<OpCase>& cases, std::int64_t rows, Projection p) {
  for (const bool training : {false, true})
    cases.push_back({fmt::format("ProjectedCrossEntropy/{}/{}x{}x{}", training ? "training" : "forward", rows,
                                 p.in, p.out),
                     (training ? 6.0 : 2.0) * static_cast<double>(rows * p.in * p.out), 0, [=](Workspace& w) {
                       Arena& a = w.activations;
                       const Tensor targets = a.tensor({rows}, DType::i32);
                       for (std::int64_t i = 0; i < rows; ++i)
                         targets.as<std::int32_t>()[i] = static_cast<std::int32_t>(i * 7919 % p.out);
                       const ops::ProjectedCrossEntropy op{
                           .targets = targets, .label_smoothing = 0.1, .gradients = training};
                       return call<3>(
                           w, Pass::forward, op,
                           {numbers(a, {rows, p.in}), numbers(a, {p.out, p.in}), numbers(a, {p.out})});
                     }});
}

void add_attention(std::vector<OpCase>& cases, std::int64_t d_model, std::int64_t heads,
                   std::int64_t length) {
  for (const Pass pass : passes)
    cases.push_back(
        {fmt::format("MultiHeadAttention/{}/{}x{}x{}", name(pass), d_model, heads, length),
         (pass == Pass::forward ? 4.0 : 8.0) * static_cast<double>(case_tokens * length * d_model), 0,
         [=](Workspace& w) {
           const Segments segments = sentences(w.activations, length);
           const ops::MultiHeadAttention op{
               .heads = heads, .kv_heads = heads, .query_segments = segments, .key_segments = segments};
           const auto operand = [&] { return numbers(w.activations, {case_tokens, d_model}); };
           return call<5>(w, pass, op, {operand(), operand(), operand(), Tensor{}, Tensor{}});
         }});
}

/// Reads x, writes y; backward reads x and ∂y and adds to ∂x.
void add_layer_norm(std::vector<OpCase>& cases, std::int64_t d) {
  for (const Pass pass : passes)
    cases.push_back(
        {fmt::format("LayerNorm/{}/{}x{}", name(pass), case_tokens, d), 0,
         (pass == Pass::forward ? 2.0 : 4.0) * sizeof(float) * static_cast<double>(case_tokens * d),
         [=](Workspace& w) {
           Arena& a = w.activations;
           return call<3>(w, pass, ops::LayerNorm{},
                          {numbers(a, {case_tokens, d}), numbers(a, {d}), numbers(a, {d})});
         }});
}

/// Reads x and f, writes y; backward reads ∂y and adds to ∂x and ∂f.
void add_residual_dropout(std::vector<OpCase>& cases, std::int64_t d) {
  for (const Pass pass : passes)
    cases.push_back(
        {fmt::format("ResidualDropout/{}/{}x{}", name(pass), case_tokens, d), 0,
         (pass == Pass::forward ? 3.0 : 5.0) * sizeof(float) * static_cast<double>(case_tokens * d),
         [=](Workspace& w) {
           Arena& a = w.activations;
           const ops::ResidualDropout op{.p = dropout, .segments = sentences(a, 16)};
           return call<2>(w, pass, op, {numbers(a, {case_tokens, d}), numbers(a, {case_tokens, d})});
         }});
}

/// Reads parameters, gradients and both moments, and writes all but the gradients.
void add_adam(std::vector<OpCase>& cases, std::int64_t parameters) {
  cases.push_back({fmt::format("Adam/update/{}", parameters), 0,
                   7.0 * sizeof(float) * static_cast<double>(parameters), [=](Workspace& w) -> Call {
                     const Tensor values = numbers(w.activations, {parameters}),
                                  gradients = numbers(w.activations, {parameters}),
                                  mean = w.activations.zeros({parameters}, DType::f32),
                                  squares = w.activations.zeros({parameters}, DType::f32);
                     const auto adam =
                         std::make_shared<train::Adam>(train::AdamConfig{}, std::span<train::DecayRange>{});
                     return [=] { adam->step({values, gradients, mean, squares}, 1, 1e-3, 1, 1); };
                   }});
}

}  // namespace

std::vector<OpCase> op_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : {DType::f32, DType::bf16}) {
    if (dtype == DType::bf16 && !kernels::has_bf16()) continue;
    for (const std::int64_t rows : {512, 1024, 4096}) {
      for (const Projection p : projections) add_gemm(cases, dtype, rows, p);
      add_gemm(cases, dtype, rows, output_projection);
    }
  }
  for (const Projection p : projections) add_linear(cases, p);
  for (const std::int64_t rows : {512, 1024}) add_cross_entropy(cases, rows, output_projection);
  for (const std::int64_t length : {16, 32, 128, 512, 2048}) {
    add_attention(cases, 128, 4, length);
    add_attention(cases, 512, 8, length);
  }
  for (const std::int64_t d : {128, 512}) add_layer_norm(cases, d);
  for (const std::int64_t d : {128, 512}) add_residual_dropout(cases, d);
  for (const std::int64_t parameters : {1 << 21, 1 << 24}) add_adam(cases, parameters);
  return cases;
}

}  // namespace polyhead::tools
