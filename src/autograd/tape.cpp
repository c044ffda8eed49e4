#include "polyhead/autograd/tape.h"

namespace polyhead {

Var Tape::make(const Tensor& value, bool wants_grad) {
  return Var(new (exec_.activations.allocate<Var::Record>()) Var::Record{value, {}, wants_grad});
}

Var Tape::leaf(const Tensor& value, const Tensor& grad) {
  require(!grad || (grad.shape == value.shape && grad.dtype == value.dtype), "a gradient ", name(grad.dtype),
          grad.shape, " for a value ", name(value.dtype), value.shape, ", expected the same");
  const Var v = make(value, recording_ && grad);
  v.record_->grad = grad;
  return v;
}

Var Tape::variable(const Tensor& value) { return make(value, recording_); }

Grad Tape::grad_of(Var v) {
  if (!v.wants_grad()) return {};
  Tensor& grad = v.record_->grad;
  if (grad) return {grad};
  grad = {nullptr, v.shape(), v.dtype()};
  Spare** link = &spare_;
  while (*link && (*link)->bytes != grad.bytes()) link = &(*link)->next;
  if (*link) {
    grad.data = (*link)->data;
    *link = (*link)->next;
  } else {
    grad = exec_.activations.tensor(v.shape(), v.dtype());
  }
  fill_zero(grad);
  return {grad};
}

void Tape::release_grad(Var v) {
  Tensor& grad = v.record_->grad;
  // The list's entry stands in the memory that it offers.
  if (grad.bytes() >= sizeof(Spare)) spare_ = new (grad.data) Spare{grad.data, grad.bytes(), spare_};
  grad = {};
}

void Tape::backward(Var loss, double scale) {
  require(loss.value().size() == 1, "backward from a value of shape ", loss.shape(), ", expected a scalar");
  const Tensor dy = exec_.activations.tensor(loss.shape(), loss.dtype());
  dispatch(dy.dtype, [&]<class T>() { *dy.as<T>() = static_cast<T>(scale); });
  backward(loss, dy);
}

void Tape::backward(Var y, const Tensor& dy) {
  require(recording_, "backward on a tape that does not record");
  require(dy.shape == y.shape() && dy.dtype == y.dtype(), "backward with a gradient ", dy.shape,
          " of a value ", y.shape());
  if (!y.wants_grad()) return;
  const Tensor grad = grad_of(y).tensor;
  dispatch(dy.dtype, [&]<class T>() {
    for (std::int64_t i = 0; i < dy.size(); ++i) grad.as<T>()[i] += dy.as<T>()[i];
  });
  for (const Node* node = last_; node; node = node->previous) node->run(*this, *node);
}

}  // namespace polyhead
