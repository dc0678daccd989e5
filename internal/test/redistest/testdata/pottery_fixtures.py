"""The fixtures that pottery's tests expect of a conftest.py, which its source distribution leaves out."""

import os

import pytest
from redis import Redis
from redis.asyncio import Redis as AIORedis


@pytest.fixture
def redis():
    client = Redis.from_url(os.environ["REDIS_URL"], socket_timeout=1)
    client.flushdb()
    yield client
    client.flushdb()
    client.close()


@pytest.fixture
async def aioredis():
    client = AIORedis.from_url(os.environ["REDIS_URL"], socket_timeout=1)
    await client.flushdb()
    yield client
    await client.flushdb()
    await client.aclose()
