import os

import redis
import time
from contextlib import contextmanager

# Connect to the Redis cluster
redis_client = redis.Redis.from_url(os.environ["REDIS_URL"])


@contextmanager
def acquire_agent_lock(entity_id: str, lock_timeout: int = 30):
    """
    Attempts to acquire a Redis lock for a specific entity before allowing
    an AI agent to process it.
    """
    lock_key = f"agent_lock:user_{entity_id}"
    lock_acquired = False
    try:
        # Standard distributed lock pattern (SET NX EX)
        # NX = Only set if it doesn't exist
        # EX = Auto-expire after X seconds (Crucial for AI deadlocks!)
        lock_acquired = redis_client.set(lock_key, "LOCKED", nx=True, ex=lock_timeout)
        if not lock_acquired:
            raise ResourceWarning(f"Entity {entity_id} is currently locked by another Agent. Aborting run.")
        yield True
    finally:
        # Always release the lock when the agent finishes, even if it crashes
        if lock_acquired:
            redis_client.delete(lock_key)


# What follows is the test's.
other = redis.Redis.from_url(os.environ["REDIS_URL"], client_name="other")
key = "agent_lock:user_7"
with acquire_agent_lock("7", lock_timeout=45):
    try:
        deleted = other.delete(key)
    except redis.ResponseError as e:
        deleted = str(e).split(" by ")[0]
    print("held", other.set(key, "LOCKED", nx=True, ex=45), deleted, other.ttl(key) in (44, 45))
    try:
        with acquire_agent_lock("7"):
            print("held twice")
    except ResourceWarning as e:
        print("refused", e)
print("free", other.exists(key))
with acquire_agent_lock("7", lock_timeout=1):
    while other.exists(key):  # it expires
        time.sleep(0.01)
    other.set(key, "LOCKED", nx=True, ex=45)
print("the next holder's", other.get(key).decode(), other.delete(key))
