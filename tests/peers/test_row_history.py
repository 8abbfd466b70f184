"""Who judges the histories of rows is judged first."""
import unittest

from plain_worker import Names
from row_history import Change, judge_changes

NAMES = Names("tarefa_id", "instancia_id", "expiracao", 1, "")


def row(owner: str, expiry: int, epoch: int = 0) -> dict:
    return {"tarefa_id": "k", "instancia_id": owner, "expiracao": expiry, "lease_epoch": epoch}


def judge(*rows: dict):
    """Of one row, from state to state; a lease is 10 s."""
    changes = [Change(before, after) for before, after in zip(rows, rows[1:])]
    return judge_changes(changes, NAMES, lambda owner: 10.0, lambda owner: owner.startswith("h"))


class Histories(unittest.TestCase):
    def test_claims_of_what_ended_or_was_given_back_are_counted_by_direction(self) -> None:
        seen, wrong = judge(row("", 0), row("h1", 110, 1), row("p1", 120, 1), row("p1", 125, 1), row("p1", 0, 1),
                            row("h1", 140, 2), row("", 0, 2), row("p2", 160, 2))
        self.assertEqual(wrong, [])
        self.assertEqual(seen, {"changes": 7, "nobody → holdfast, given back": 1, "holdfast → plain, ended": 1,
                                "plain → holdfast, given back": 1, "holdfast → plain, given back": 1})

    def test_a_lease_that_was_taken_before_its_end_is_found(self) -> None:
        self.assertEqual(len(judge(row("p1", 110), row("p2", 115))[1]), 1)
        self.assertEqual(judge(row("p1", 110), row("p2", 120))[1], [])
        self.assertEqual(judge(row("p1", 110), row("p1", 115), row("p1", 112))[1], [], "it may shorten its own")

    def test_an_epoch_that_falls_or_is_not_raised_is_found(self) -> None:
        self.assertEqual(len(judge(row("", 0, 5), row("h1", 110, 5))[1]), 1)
        self.assertEqual(len(judge(row("", 0, 5), row("p1", 110, 4))[1]), 1)
        self.assertEqual(len(judge(row("", 0, 5), row("h1", 110, 7))[1]), 1)

    def test_a_change_that_is_missing_is_found(self) -> None:
        first, other = Change(row("", 0), row("p1", 110)), Change(row("p2", 110), row("p2", 115))
        self.assertEqual(len(judge_changes([first, other], NAMES, lambda owner: 10.0, lambda owner: False)[1]), 1)


if __name__ == "__main__":
    unittest.main()
