"""The lock that other people's functions have, in boto3: an item is put where there is none or its expiry has passed, and
deleted by who put it. It knows a name, an owner, and an expiry in seconds; what else stands in the item goes with it.
"""
import time

from botocore.exceptions import ClientError

KEY, OWNER, EXPIRES = "tarefa_id", "instancia_id", "expiracao"


class PutLock:
    """One instance's view of the locks of a table (boto3's)."""

    def __init__(self, table, instance: str, lease_seconds: int) -> None:
        self._table = table
        self._instance = instance
        self._lease_seconds = lease_seconds

    def acquire(self, name: str) -> "int | None":
        """Until when it is ours, in seconds since 1970; nothing where somebody else has it."""
        now = int(time.time())
        expires = now + self._lease_seconds
        mine = self._if_allowed(lambda: self._table.put_item(
            Item={KEY: name, OWNER: self._instance, EXPIRES: expires},
            ConditionExpression=f"attribute_not_exists({KEY}) OR {EXPIRES} < :now",
            ExpressionAttributeValues={":now": now}))
        return expires if mine else None

    def release(self, name: str) -> bool:
        return self._if_allowed(lambda: self._table.delete_item(
            Key={KEY: name}, ConditionExpression=f"{OWNER} = :me", ExpressionAttributeValues={":me": self._instance}))

    @staticmethod
    def _if_allowed(write) -> bool:
        try:
            write()
        except ClientError as error:
            if error.response["Error"]["Code"] == "ConditionalCheckFailedException":
                return False
            raise
        return True
