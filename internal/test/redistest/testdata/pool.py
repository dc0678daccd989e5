import os
import threading
import time

import redis

r = redis.Redis.from_url(os.environ["REDIS_URL"])
deleted = []


def work(agent: int) -> None:
    for turn in range(5):
        key = f"agent_lock:{agent}-{turn}"
        if r.set(key, "LOCKED", nx=True, ex=45):
            deleted.append(r.delete(key))


# Threads share the connections of a pool, so a DEL may travel over another one than its SET.
threads = [threading.Thread(target=work, args=(agent,)) for agent in range(20)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(len(deleted), sum(deleted), len(r.connection_pool._available_connections) > 1)

# Two workers have one URL, and the first one is late.
second, third = (redis.Redis.from_url(os.environ["REDIS_URL"]) for _ in range(2))
key = "agent_lock:late"
print(r.set(key, "LOCKED", nx=True, ex=1))
while r.exists(key):
    time.sleep(0.01)
print(second.set(key, "LOCKED", nx=True, ex=45))
try:
    print("deleted", r.delete(key))
except redis.ResponseError as e:
    print(str(e).split(",")[0])
print(third.set(key, "LOCKED", nx=True, ex=45))
