"""docs/capacity.md says what DynamoDB Local says."""
import unittest

import capacity
from dynamodb_server import Shared


class TheDocument(unittest.TestCase):
    def test_it_holds_the_figures_that_are_measured_now(self) -> None:
        server = Shared("local")
        self.assertTrue(server.endpoint, server.failure)
        text = capacity.DOCUMENT.read_text(encoding="utf-8")
        self.assertIn(capacity.BEGIN, text)
        written = text.partition(capacity.BEGIN)[2].partition(capacity.END)[0]
        self.assertEqual(written, capacity.as_table(capacity.measure(server.endpoint)),
                         "run tests/peers/capacity.py --write, and read what else the document says of them")


if __name__ == "__main__":
    unittest.main(warnings="ignore")  # boto3 keeps its connections for later
