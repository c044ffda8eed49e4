#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace polyhead::experiment {

/// Where JSON is not of a shape, in words: "sets[3].name is 7, expected text"; empty where it is. A shape is JSON, too:
///     "a number"            a value of that type; json_shape.cpp lists them
///     [SHAPE]               a list of such
///     [SHAPE, "and more"]   one that is not empty
///     {"name": SHAPE}       an object with that member; it may be missing where the name ends in "?", and "*" stands for
///                           all members without a shape of their own, which otherwise may be anything
std::string shape_problem(const nlohmann::ordered_json& json, std::string_view shape);

}  // namespace polyhead::experiment
