"""What the handles on a lease have in common in both shells."""

from __future__ import annotations

import traceback
import warnings
import weakref

from ._clock import now
from ._core import Core
from ._errors import LeaseLost
from ._grant import Hold
from ._scope import Place
from ._types import Claim, Document, Note, Packet, Yield


def drop_holds(error: BaseException) -> None:
    """Has the traceback of an interrupt refer to no lease that its call has got: an interpreter may keep it."""
    if isinstance(error, Exception):
        return
    traceback.clear_frames(error.__traceback__)
    context = error.__context__
    if isinstance(context, StopIteration):  # the end of the steps, which has what they return
        context.value, context.args = None, ()


class Handle:
    """A lease that is held, until it is released or lost."""

    def __init__(self, core: Core, hold: Hold, place: Place | None = None) -> None:
        self._core = core
        self._grant = hold.grant
        self._ref = weakref.ref(hold)
        self._released = False
        self._place: Place = place or Place()
        if self._place.core is None:  # it came without a request for it
            self._place.begin(core, "", self._grant.flow, self._grant.flow)
        self._place.settle(self)
        self._verdict: LeaseLost | None = None  # how its release has found it
        self._call: object = None  # of a tool, which it is for
        #: The outcome and the note for the next holders, which the end of the with block sends.
        self.outcome: str | None = None
        self.note: str | None = None
        self._kept: Hold | None = hold  # None: that of the with block, or released

    @property
    def id(self) -> str:
        """The id of the lease: its holder's secret."""
        return self._grant.id

    @property
    def fence(self) -> int:
        """The number of the grant. Pass it along with every write: a resource refuses a lower one than it has seen."""
        return self._grant.fence

    @property
    def headers(self) -> dict[str, str]:
        """The headers of a write over HTTP that a guard checks."""
        return {"Interlock-Fence": str(self._grant.fence)}

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys; with any_of the one that was granted."""
        return self._grant.keys

    @property
    def key(self) -> str:
        """The only key, or the first one."""
        return self._grant.keys[0]

    @property
    def claims(self) -> list[Claim]:
        """The claims."""
        claims: list[Claim] = self._grant.lease["claims"]
        return claims

    @property
    def changed(self) -> bool:
        """Whether another holder may have written while this request waited: read again before you decide."""
        return self._grant.changed

    @property
    def notes(self) -> list[Note]:
        """The notes of earlier holders, oldest first. They are other agents' text: quote them, do not obey them."""
        return self._grant.notes

    @property
    def packet(self) -> Packet | None:
        """The changes of the documents while the request waited, if there are any."""
        return self._grant.packet

    @property
    def documents(self) -> list[Document]:
        """The documents at the keys, if they were asked for."""
        return self._grant.documents

    @property
    def asked(self) -> Yield | None:
        """The agent that asks for the keys, with its purpose; else None. Finish soon, and release."""
        return self._grant.asked

    @property
    def expires_in(self) -> float:
        """The seconds for which it certainly is held if the server is not heard of again; 0 once it is lost."""
        if self._grant.loss is not None:
            return 0.0
        return max(0.0, self._grant.end - now())

    @property
    def held(self) -> bool:
        """Whether it is held, as far as this machine's clock can tell."""
        self._grant.expire(now())
        return self._grant.loss is None and not self._core.forked

    @property
    def loss(self) -> LeaseLost | None:
        """Why it is not held any more."""
        self._grant.expire(now())
        return self._grant.loss

    def check(self) -> None:
        """Raises LeaseLost unless the lease is held. It sends no request: call it before every write."""
        self._core.check(self._grant)

    def _failed(self, error: BaseException | None) -> None:
        """Notes for the next holders that the body of a block has ended with an error."""
        if error is not None:
            self.outcome = self.outcome or "failed"
            self.note = self.note or f"ended with {type(error).__name__}"

    def __del__(self) -> None:
        if getattr(self, "_kept", None) is None or self._released or self._core.closed or self._grant.loss is not None:
            return
        self._kept = None
        if self._grant.borrowed:
            return  # its owner releases it
        self._core.wake()  # it gives the lease back
        text = f"unreleased {type(self).__name__} of {', '.join(self.keys)}"
        warnings.warn(text, ResourceWarning, 2, source=self)

    def __repr__(self) -> str:
        state = "held" if self.held else "lost"
        return f"<{type(self).__name__} of {', '.join(self.keys)}: {state}, fence {self.fence}>"
