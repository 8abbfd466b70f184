#include "holdfast/capacity.hpp"

namespace holdfast {

std::string_view to_string(Purpose purpose) {
  switch (purpose) {
    case Purpose::claim:
      return "claim";
    case Purpose::renew:
      return "renew";
    case Purpose::checkpoint:
      return "checkpoint";
    case Purpose::release:
      return "release";
    case Purpose::session:
      return "session";
    case Purpose::look:
      return "look";
    case Purpose::other:
      break;
  }
  return "other";
}

Consumed& Consumed::operator+=(const Consumed& other) {
  requests += other.requests;
  attempts += other.attempts;
  throttled += other.throttled;
  counted += other.counted;
  table_write_units += other.table_write_units;
  index_write_units += other.index_write_units;
  table_read_units += other.table_read_units;
  index_read_units += other.index_read_units;
  return *this;
}

}  // namespace holdfast
