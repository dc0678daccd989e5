"""The life of a lease, with the client that openapi-python-client generated. Usage: life.py URL"""

import json
import sys

from generated import Client
from generated.api.leases import acquire_lease, get_lease, release_lease, renew_lease
from generated.api.state import get_state, set_state
from generated.models import (
    AcquireRequest,
    ClaimRequest,
    Committed,
    Done,
    Granted,
    Problem,
    ReleaseRequest,
    RenewRequest,
    SetStateJsonBody,
)
from generated.types import File

client = Client(base_url=sys.argv[1])
request = AcquireRequest(agent="python", purpose="try it", claims=[ClaimRequest(key="account:1")])

granted = acquire_lease.sync(client=client, body=request)
assert isinstance(granted, Granted), granted
lease = granted.lease.id
assert granted.lease.claims[0].key == "account:1" and granted.lease.fence.isdigit(), granted

refused = acquire_lease.sync_detailed(client=client, body=request)
assert refused.status_code == 409 and isinstance(refused.parsed, Problem), refused
assert refused.parsed.code == "held" and refused.parsed.holders[0].agent == "python", refused.parsed

got = get_lease.sync(client=client, id=lease)
assert isinstance(got, Granted) and got.lease.fence == granted.lease.fence, got
renewed = renew_lease.sync(client=client, id=lease, body=RenewRequest(progress="half"))
assert isinstance(renewed, Granted) and renewed.lease.id == lease, renewed
released = release_lease.sync(client=client, id=lease, body=ReleaseRequest(outcome="done"))
assert isinstance(released, Done) and released.outcome == "released", released
gone = release_lease.sync(client=client, id=lease, body=ReleaseRequest())
assert isinstance(gone, Problem) and gone.code == "released", gone

body = SetStateJsonBody.from_dict({"balance": 4})
written = set_state.sync(client=client, key="doc:1", body=body, if_none_match="*")
assert isinstance(written, Committed) and written.documents[0].version.isdigit(), written
document = get_state.sync(client=client, key="doc:1")
assert isinstance(document, File) and json.load(document.payload) == {"balance": 4}, document
read = f'"{written.documents[0].version}"'
again = set_state.sync(client=client, key="doc:1", body=SetStateJsonBody.from_dict({"balance": 3}), if_match=read)
assert isinstance(again, Committed), again
stale = set_state.sync(client=client, key="doc:1", body=body, if_match=read)
assert isinstance(stale, Problem) and stale.code == "stale" and stale.packet, stale
print("python: ok")
