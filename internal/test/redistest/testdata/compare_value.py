import os

import redis

r = redis.Redis.from_url(os.environ["REDIS_URL"])


def acquire_agent_mutex(lock_name: str, agent_id: str, ttl_seconds: int = 30) -> bool:
    # NX makes acquisition atomic: only set the lock when it does not exist.
    return bool(r.set(f"lock:{lock_name}", agent_id, ex=ttl_seconds, nx=True))


def release_agent_mutex(lock_name: str, agent_id: str) -> int:
    # Only the agent that owns the lock can release it.
    lua_release = """
    if redis.call("get", KEYS[1]) == ARGV[1] then
        return redis.call("del", KEYS[1])
    else
        return 0
    end
    """
    return int(r.eval(lua_release, 1, f"lock:{lock_name}", agent_id))


# What follows is the test's.
print(acquire_agent_mutex("account:12345", "billing"), acquire_agent_mutex("account:12345", "support"))
print(release_agent_mutex("account:12345", "support"), release_agent_mutex("account:12345", "billing"))
print(acquire_agent_mutex("account:12345", "support"), release_agent_mutex("account:12345", "support"))
