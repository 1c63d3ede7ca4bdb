// What became of a replacement at each broker, as JSON.
#pragma once

#include <utility>
#include <vector>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <millrace/replacements.h>

namespace millrace::http_transport {

inline boost::json::array replaced_json(const std::vector<ReplacedAt>& replaced) {
  boost::json::array brokers;
  for (const auto& [broker, refused] : replaced) {
    boost::json::object one{{"id", broker}, {"replaced", refused.empty()}};
    if (!refused.empty()) one["reason"] = refused;
    brokers.emplace_back(std::move(one));
  }
  return brokers;
}

}  // namespace millrace::http_transport
