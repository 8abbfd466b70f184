// Instead of gmock_main: tests of several processes start this program again, as a helper.
#include <gmock/gmock.h>

#include <string_view>

#include "helper.hpp"

int main(int count, char** arguments) {
  if (count > 1 && std::string_view(arguments[1]) == "--store-helper") {
    return holdfast::test::help({arguments + 2, arguments + count});
  }
  testing::InitGoogleMock(&count, arguments);
  return RUN_ALL_TESTS();
}
