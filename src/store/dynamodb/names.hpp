#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "holdfast/error.hpp"

namespace holdfast::store::dynamodb {

/// What the expiry of leases is counted in, in the table. Rows have it in milliseconds.
enum class ExpiryUnit { milliseconds, seconds };

/// What a table calls the things that rows are made of: a table that others made has names of its own. What is not
/// renamed is called there as here.
class Names {
 public:
  using Renamed = std::map<std::string, std::string, std::less<>>;  // ours -> theirs

  Names() = default;
  /// Code::usage where two things would have one name.
  [[nodiscard]] static Result<Names> make(std::string key, Renamed renamed, ExpiryUnit unit);

  [[nodiscard]] const std::string& key() const { return key_; }
  [[nodiscard]] ExpiryUnit expiry_unit() const { return unit_; }

  /// What the table calls our attribute. A view of `ours`, or of what lives as long as this.
  [[nodiscard]] std::string_view theirs(std::string_view ours) const;
  /// What we call the table's attribute. Nothing for the key, and for an attribute that bears a name by which we
  /// call another one: it is not shown, and never written.
  [[nodiscard]] std::optional<std::string_view> ours(std::string_view theirs) const;
  /// Why an attribute of this name, one of ours, can be neither read nor written in this table.
  [[nodiscard]] std::optional<Error> refusal(std::string_view ours) const;

 private:
  std::string key_ = "Pk";
  Renamed theirs_;
  Renamed ours_;
  ExpiryUnit unit_ = ExpiryUnit::milliseconds;
};

}  // namespace holdfast::store::dynamodb
