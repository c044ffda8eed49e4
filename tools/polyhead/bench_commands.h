#pragma once

#include "commands.h"

namespace polyhead::tools {

/// The commands of `polyhead bench`.
Command add_bench_train(CLI::App& bench);
Command add_bench_decode(CLI::App& bench);
Command add_bench_ops(CLI::App& bench);

}  // namespace polyhead::tools
