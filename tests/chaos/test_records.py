"""Sink files are read as they grow; lines that are no whole records of the feed's messages are found."""
import json
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from records import Counter, Record, SinkFolder, parse, payload  # noqa: E402

SIZE = 32
OWNER = "w1-0123abcd"


def line(seq=7, conn="s0", epoch=2, **changes) -> bytes:
    message = {"stream": conn, "seq": seq, "at_ms": 5, "data": payload(seq, SIZE)}
    message.update(changes.pop("message", {}))
    value = {"conn": conn, "epoch": epoch, "seq": seq, "at_ms": 9, "data": json.dumps(message)}
    value.update(changes)
    return json.dumps(value).encode()


class Lines(unittest.TestCase):
    def read(self, text: bytes):
        return parse(text, OWNER, "file", 3, 1, SIZE)

    def assert_refused(self, text: bytes):
        self.assertNotIsInstance(self.read(text), Record)

    def test_a_record(self):
        self.assertEqual(Record("s0", 2, 7, None, 9, OWNER, "file", 3, 1), self.read(line()))

    def test_the_feeds_text_is_the_one_that_the_program_makes(self):
        # As in src/cli/feed_streams.cpp: the letter of place i is (seq + i) mod 26.
        self.assertEqual("bcdefghijklmnopqrstuvwxyzabcdefg", payload(1, 32))

    def test_a_gap(self):
        self.assertEqual((3, 5), self.read(b'{"conn":"s0","epoch":2,"gap":[3,5],"at_ms":9}').gap)
        self.assert_refused(b'{"conn":"s0","epoch":2,"gap":[5,3],"at_ms":9}')

    def test_half_a_line(self):
        self.assert_refused(line()[:40])
        self.assert_refused(line()[40:])

    def test_a_message_of_another_connection(self):
        self.assert_refused(line(message={"stream": "s1"}))

    def test_a_message_of_another_number(self):
        self.assert_refused(line(message={"seq": 8}))

    def test_a_text_that_was_cut_or_changed(self):
        self.assert_refused(line(message={"data": payload(7, SIZE)[:-1]}))
        self.assert_refused(line(message={"data": payload(8, SIZE)}))

    def test_a_message_that_is_none(self):
        self.assert_refused(line(data="TP/1.1 101 Switching Protocols"))

    def test_fields_that_are_missing_or_of_the_wrong_kind(self):
        self.assert_refused(line(epoch=0))
        self.assert_refused(line(epoch="2"))
        self.assert_refused(line().replace(b'"seq": 7, "at_ms"', b'"seq": null, "at_ms"'))
        self.assert_refused(b'{"conn":"s0","epoch":2,"seq":7,"at_ms":9}')
        self.assert_refused(b'[]')


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = folder.name
        self.folder = SinkFolder(self.path, SIZE)
        self.clock = Counter()

    def append(self, text: bytes, name: str = f"{OWNER}-000001.ndjson"):
        with open(os.path.join(self.path, name), "ab") as out:
            out.write(text)

    def read(self):
        records, faults = self.folder.read(self.clock)
        self.assertEqual([], faults)
        return records

    def test_what_is_new_and_once(self):
        self.append(line(1) + b"\n" + line(2) + b"\n")
        self.assertEqual([1, 2], [record.seq for record in self.read()])
        self.assertEqual([], self.read())
        self.append(line(3) + b"\n")
        self.assertEqual([3], [record.seq for record in self.read()])

    def test_a_line_in_two_parts(self):
        self.append(line(1)[:30])
        self.assertEqual([], self.read())
        self.assertEqual([(f"{OWNER}-000001.ndjson", OWNER)], self.folder.torn())
        self.append(line(1)[30:] + b"\n")
        self.assertEqual([1], [record.seq for record in self.read()])
        self.assertEqual([], self.folder.torn())

    def test_a_record_is_known_to_be_younger_than_one_that_was_read_before_its_file_was_looked_at(self):
        self.append(line(1) + b"\n")
        self.read()
        self.append(line(2) + b"\n", "w2-0123abcd-000001.ndjson")
        first = self.read()[0]
        self.append(line(3) + b"\n")
        second = self.read()[0]
        self.assertEqual([2, 3], [first.seq, second.seq])
        self.assertGreaterEqual(second.absent, 0)
        self.assertLess(second.absent, second.seen)
        # File w1 was read before file w2 in the same look: that is no proof. In the look after that it is.
        self.append(line(4) + b"\n")
        self.assertGreaterEqual(self.read()[0].absent, first.seen)

    def test_a_new_file_was_not_there_when_the_folder_was_listed_last(self):
        self.append(line(1) + b"\n")
        first = self.read()[0]
        self.read()
        self.append(line(2) + b"\n", "w2-0123abcd-000001.ndjson")
        self.assertGreaterEqual(self.read()[0].absent, first.seen)

    def test_a_line_whose_beginning_was_there_is_as_old_as_its_beginning(self):
        self.append(line(1) + b"\n")
        self.read()
        self.append(line(2)[:20])
        self.read()
        before = self.clock.next()
        self.read()
        self.append(line(2)[20:] + b"\n" + line(3) + b"\n")
        second, third = self.read()
        self.assertLess(second.absent, before)
        self.assertGreater(third.absent, before)

    def test_other_files_are_left_alone(self):
        self.append(b"nonsense\n", "notes.txt")
        self.assertEqual([], self.read())


if __name__ == "__main__":
    unittest.main()
