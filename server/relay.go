package server

import (
	"errors"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/proto"
)

// relay carries the frames of a client to the owner of its shard, and those of the owner back. Each side reads
// when the other one has taken what came before, so a slow reader slows its own sender alone.
//
//	client ◄──► relay ◄──► owner
//
// When either ends, so does the other, for the same reason. The first frame names the owner to the client, which opens
// its next stream there if it knows the address.
type relay struct {
	client proto.ServerLink
	owner  proto.ClientLink
	at     Location // of the owner
	count  prometheus.Gauge
	trips  *trips

	once   sync.Once
	reason *interlock.Error
}

func (r *relay) run() *interlock.Error {
	r.count.Inc()
	defer r.count.Dec()
	defer r.trips.begin(toOwnerOf(r.at, peerPatience), func(error) { r.cut(relayEnded()) })()
	back := make(chan struct{})
	go func() {
		defer close(back)
		frame := proto.ServerFrame{Owner: r.at.Active.GRPC}
		err := r.client.Send(&frame)
		for err == nil {
			if err = r.owner.Recv(&frame); err == nil {
				err = r.client.Send(&frame)
			}
		}
		reason, refused := errors.AsType[*interlock.Error](err)
		if !refused {
			reason = relayEnded()
		}
		r.cut(reason)
	}()
	var frame proto.ClientFrame
	err := error(nil)
	for err == nil {
		if err = r.client.Recv(&frame); err == nil {
			err = r.owner.Send(&frame)
		}
	}
	refusal, _ := errors.AsType[*interlock.Error](err)
	r.cut(refusal)
	<-back
	return r.reason
}

func relayEnded() *interlock.Error {
	return &interlock.Error{
		Code:    interlock.CodeNotOwner,
		Message: "the owner of the shard does not answer: connect again and repeat the unanswered requests",
	}
}

func (r *relay) cut(reason *interlock.Error) {
	r.once.Do(func() {
		r.reason = reason
		r.owner.Close(nil)
		r.client.Close(reason)
	})
}
