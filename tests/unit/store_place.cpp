// What a store's URL comes to: one table, one place, however it is written down.
#include "store/place.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "support/temporary_folder.hpp"

namespace holdfast::store {
namespace {

class PlaceTest : public testing::Test {
 protected:
  PlaceTest() {
    for (const char* name : {"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_DYNAMODB",
                             "AWS_PROFILE", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"}) {
      ::unsetenv(name);
    }
    ::setenv("AWS_CONFIG_FILE", "/dev/null", 1);
    ::setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null", 1);
  }
  ~PlaceTest() override {
    for (const char* name :
         {"AWS_REGION", "AWS_ENDPOINT_URL_DYNAMODB", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"}) {
      ::unsetenv(name);
    }
  }
  test::TemporaryFolder folder_;
};

TEST_F(PlaceTest, a_region_is_the_same_whether_the_url_or_the_environment_says_it) {
  const Place spelled = place_of("dynamodb://jobs?region=eu-west-1");
  EXPECT_EQ(spelled, (Place{{"table", "dynamodb://jobs"},
                            {"region", "eu-west-1"},
                            {"endpoint", "https://dynamodb.eu-west-1.amazonaws.com"}}));
  ::setenv("AWS_REGION", "eu-west-1", 1);
  EXPECT_EQ(place_of("dynamodb://jobs"), spelled);
  ::setenv("AWS_REGION", "eu-west-2", 1);
  EXPECT_NE(place_of("dynamodb://jobs"), spelled);
  EXPECT_EQ(place_of("dynamodb://jobs?region=eu-west-1"), spelled);
  ::setenv("AWS_ENDPOINT_URL_DYNAMODB", "http://LOCALHOST:8000/", 1);
  EXPECT_EQ(place_of("dynamodb://jobs?region=eu-west-1").at("endpoint"), "http://localhost:8000");
}

TEST_F(PlaceTest, what_is_not_known_is_left_out) {
  EXPECT_EQ(place_of("dynamodb://jobs"), (Place{{"table", "dynamodb://jobs"}}));
  EXPECT_EQ(place_of("memory:"), Place{});
  EXPECT_EQ(place_of("nonsense"), Place{});
}

TEST_F(PlaceTest, a_file_is_the_same_by_whatever_path_also_while_it_is_away) {
  std::filesystem::create_directory(folder_.file("disk"));
  std::filesystem::create_directory_symlink("disk", folder_.file("mounted"));
  std::filesystem::create_symlink("mounted/../mounted/jobs.db", folder_.file("link.db"));
  const Place place = place_of("sqlite:" + folder_.file("disk/jobs.db"));
  std::ofstream(folder_.file("disk/jobs.db")) << "there";
  for (const bool is_there : {true, false}) {
    EXPECT_EQ(place_of("sqlite:" + folder_.file("link.db")), place) << is_there;
    EXPECT_EQ(place_of("sqlite:" + folder_.file("mounted/jobs.db?sync=normal")), place) << is_there;
    EXPECT_NE(place_of("sqlite:" + folder_.file("disk/other.db")), place);
    std::filesystem::remove_all(folder_.file("disk"));
  }
}

TEST_F(PlaceTest, links_in_a_circle_lead_to_somewhere) {
  std::filesystem::create_symlink("b", folder_.file("a"));
  std::filesystem::create_symlink("a", folder_.file("b"));
  EXPECT_FALSE(place_of("sqlite:" + folder_.file("a")).at("table").empty());
}

}  // namespace
}  // namespace holdfast::store
