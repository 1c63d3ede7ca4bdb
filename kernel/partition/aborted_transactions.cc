#include "kernel/partition/aborted_transactions.h"

#include <algorithm>
#include <string>

#include <millrace/bytes.h>

namespace millrace::kernel {

namespace {

// A row: version, producer, first offset, last offset, last stable offset.
constexpr std::int16_t row_version = 0;
constexpr std::size_t row_bytes = 34;

AbortedRow load_row(const std::byte* at) {
  return {.producer_id = load_be<std::int64_t>(at + 2),
          .first = {load_be<std::int64_t>(at + 10)},
          .last = {load_be<std::int64_t>(at + 18)},
          .last_stable = {load_be<std::int64_t>(at + 26)}};
}

void store_row(std::byte* at, const AbortedRow& row) {
  store_be(at, row_version);
  store_be(at + 2, row.producer_id);
  store_be(at + 10, row.first.value);
  store_be(at + 18, row.last.value);
  store_be(at + 26, row.last_stable.value);
}

Error corrupt(std::size_t row, std::string what) {
  return {Errc::corrupt, "aborted transactions: row " + std::to_string(row) + ": " + what};
}

}  // namespace

std::vector<AbortedTransaction> AbortedTransactions::within(Offset from, Offset limit) const {
  std::vector<AbortedTransaction> found;
  for (auto row = std::ranges::lower_bound(rows_, from, {}, &AbortedRow::last); row != rows_.end();
       ++row) {
    if (row->first < limit) found.push_back({row->producer_id, row->first});
    if (row->last_stable >= limit) break;  // whatever ended later began behind that
  }
  return found;
}

void AbortedTransactions::trim_before(Offset start) {
  rows_.erase(rows_.begin(), std::ranges::lower_bound(rows_, start, {}, &AbortedRow::last));
}

void AbortedTransactions::truncate_from(Offset from) {
  rows_.erase(std::ranges::lower_bound(rows_, from, {}, &AbortedRow::last), rows_.end());
}

void AbortedTransactions::forget(const std::vector<Offset>& markers) {
  std::erase_if(rows_, [&markers](const AbortedRow& row) {
    return std::ranges::binary_search(markers, row.last);
  });
}

Buffer AbortedTransactions::encode(Offset base, Offset next) const {
  const auto begin = std::ranges::lower_bound(rows_, base, {}, &AbortedRow::last);
  const auto end = std::ranges::lower_bound(rows_, next, {}, &AbortedRow::last);
  MutableBuffer file(static_cast<std::size_t>(end - begin) * row_bytes);
  auto* at = file.data();
  for (auto row = begin; row < end; ++row, at += row_bytes) store_row(at, *row);
  file.filled(file.capacity());
  return std::move(file).freeze();
}

Result<> AbortedTransactions::add_all(Bytes file) {
  if (file.size() % row_bytes != 0) {
    return corrupt(file.size() / row_bytes, "the file ends within it");
  }
  std::vector<AbortedRow> added;
  auto last = rows_.empty() ? Offset{-1} : rows_.back().last;
  for (std::size_t at = 0; at < file.size(); at += row_bytes) {
    const auto version = load_be<std::int16_t>(file.data() + at);
    if (version != row_version) {
      return corrupt(at / row_bytes, "version " + std::to_string(version) + ", expected 0");
    }
    const auto row = load_row(file.data() + at);
    if (row.last <= last || row.first < Offset{0} || row.first > row.last) {
      return corrupt(at / row_bytes, "offsets " + std::to_string(row.first.value) + " to " +
                                         std::to_string(row.last.value) + " behind " +
                                         std::to_string(last.value));
    }
    last = row.last;
    added.push_back(row);
  }
  rows_.insert(rows_.end(), added.begin(), added.end());
  return {};
}

}  // namespace millrace::kernel
