package client

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/proto"
)

// Commit is a set of changes to documents: see Client.Commit. Its Reads come from Seen and
// SomeVersion, and its Writes from Put, PutBytes, Delete, Merge, Add and AddWithin.
type Commit = interlock.CommitRequest

// CommitResult is the result of a commit.
type CommitResult struct {
	Version interlock.Version // that it made; of a commit without writes, the namespace's present one
	// Documents are the written documents, in the order of Writes. Only counters have a body.
	Documents []interlock.Document
	// Advice names a better strategy for these keys, if there is one; else it is zero.
	Advice interlock.Advice
	At     interlock.At
}

// Commit carries out a set of changes. It happens once, also when the connection
// breaks meanwhile. With CodeOutcomeUnknown ctx ended before the answer came, or the
// session did: read before you commit again. A server that is shutting down or has too
// much to do is asked again, as by Acquire.
func (c *Client) Commit(ctx context.Context, req Commit) (*CommitResult, error) {
	flow := c.flow(ctx, req.Flow)
	var got *found
	err := c.again(ctx, serverBusy, func() (err error) {
		k := c.newCall(proto.OpCommit)
		own := req
		own.Reads, own.Writes, own.Leases, own.Flow = slices.Clone(req.Reads), cloneWrites(req.Writes),
			slices.Clone(req.Leases), flow
		k.op.Commit = &own
		got, err = c.do(ctx, k, "the commit")
		return err
	})
	if refusal, ok := errors.AsType[*interlock.Error](err); ok && refusal.Code == interlock.CodeStale && got != nil {
		stale := &StaleError{Refusal: refusal, Packet: interlock.Packet{Message: refusal.Message}}
		if got.Packet != nil {
			stale.Packet = *got.Packet
		}
		return nil, stale
	}
	if err != nil {
		return nil, err
	}
	done := &CommitResult{Version: got.Version, Documents: cloneDocuments(got.Documents), At: got.at}
	if got.Advice != nil {
		done.Advice = *got.Advice
	}
	return done, nil
}

// Commit is Client.Commit in the name of the lease, by its flow.
func (l *Lease) Commit(ctx context.Context, req Commit) (*CommitResult, error) {
	req.Leases = append(slices.Clone(req.Leases), l.ID())
	if req.Flow == "" {
		req.Flow = l.Flow()
	}
	done, err := l.g.c.Commit(ctx, req)
	return done, l.reason(err)
}

// StaleError reports that a read of a commit has changed, so that nothing was written.
// It wraps an *interlock.Error with CodeStale.
type StaleError struct {
	Refusal *interlock.Error
	// Packet describes the changes. Its Message has them in words for a model's prompt, with
	// texts of other agents quoted as data.
	interlock.Packet
}

func (e *StaleError) Error() string { return e.Refusal.Error() }

func (e *StaleError) Unwrap() error { return e.Refusal }

// Seen returns the reads of a commit that depends on the present versions of documents.
func Seen(documents ...interlock.Document) []interlock.Read {
	reads := make([]interlock.Read, len(documents))
	for i := range documents {
		d := &documents[i]
		reads[i] = interlock.Read{Key: d.Key, Version: d.Version, Absent: d.Absent}
	}
	return reads
}

// SomeVersion returns the reads of a commit that requires a document of any version at each key.
// It does not prevent the overwriting of a change; Seen does. A commit that replaces a document
// without a version that it has Seen, and without a lease on the key, declares with it that it
// overwrites a version that it has not read.
func SomeVersion(keys ...interlock.Key) []interlock.Read {
	reads := make([]interlock.Read, len(keys))
	for i, key := range keys {
		reads[i] = interlock.Read{Key: key, Present: true}
	}
	return reads
}

// Put replaces a document by a JSON value, passed as its text.
func Put(key interlock.Key, value []byte) interlock.Write {
	return interlock.Write{Key: key, Op: interlock.Put, ContentType: interlock.JSONType, Body: value}
}

// PutBytes replaces a document by text or bytes of any type, such as "text/plain".
func PutBytes(key interlock.Key, contentType string, body []byte) interlock.Write {
	return interlock.Write{Key: key, Op: interlock.Put, ContentType: contentType, Body: body}
}

// Delete removes a document.
func Delete(key interlock.Key) interlock.Write {
	return interlock.Write{Key: key, Op: interlock.Delete}
}

// Merge applies a JSON merge patch (RFC 7396) to a JSON document.
func Merge(key interlock.Key, patch []byte) interlock.Write {
	return interlock.Write{Key: key, Op: interlock.Merge, Body: patch}
}

// Add adds to a counter, which is 0 while it is absent. Additions are never in
// conflict with one another, so they need neither a version nor a lease.
func Add(key interlock.Key, delta int64) interlock.Write {
	return interlock.Write{Key: key, Op: interlock.Add, Delta: delta}
}

// AddWithin is Add for a counter that must not leave its bounds: the commit is refused
// with code "out_of_bounds" rather than that the sum is less than least or more than
// most. math.MinInt64 and math.MaxInt64 stand for no bound.
func AddWithin(key interlock.Key, delta, least, most int64) interlock.Write {
	w := Add(key, delta)
	if least != math.MinInt64 {
		w.Min = &least
	}
	if most != math.MaxInt64 {
		w.Max = &most
	}
	return w
}

// cloneWrites makes writes that share no memory: in one process, the server keeps the
// bodies.
func cloneWrites(list []interlock.Write) []interlock.Write {
	clones := slices.Clone(list)
	for i := range clones {
		clones[i].Body = bytes.Clone(clones[i].Body)
	}
	return clones
}
