package client

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/proto"
)

// Snapshot is the state of several documents at one moment.
type Snapshot struct {
	// Version is the version of the namespace's last commit: the moment. Commit.AsOf and
	// Request.AsOf take it.
	Version interlock.Version
	// Documents are in the order in which their keys were named, absent ones among them.
	Documents []interlock.Document
	At        interlock.At
}

// Document reads the guarded state of a key. An absent document is returned as such, and is no
// error.
func (c *Client) Document(ctx context.Context, key interlock.Key) (interlock.Document, error) {
	s, err := c.Documents(ctx, key)
	if err != nil {
		return interlock.Document{}, err
	}
	return s.Documents[0], nil
}

// Documents reads the guarded state of several keys as it is at one moment: at most
// interlock.MaxReads of them, with bodies of not more than interlock.MaxReadBytes together
// (else the error has code "body_too_large"). It sees every commit that was answered before.
func (c *Client) Documents(ctx context.Context, keys ...interlock.Key) (Snapshot, error) {
	return c.documents(ctx, 0, keys)
}

// DocumentsAt reads the guarded state of several keys as it was with a version of the
// namespace: after the commit that made it. The error has code "history_trimmed" when
// that is no longer kept.
func (c *Client) DocumentsAt(ctx context.Context, version interlock.Version, keys ...interlock.Key) (Snapshot, error) {
	s, err := c.documents(ctx, version, keys)
	s.Version = version
	return s, err
}

func (c *Client) documents(ctx context.Context, version interlock.Version, keys []interlock.Key) (Snapshot, error) {
	if len(keys) == 0 {
		return Snapshot{}, &interlock.Error{
			Code: interlock.CodeInvalidRequest, Message: "no key is named: name one at least, or list documents",
		}
	}
	k := c.newCall(proto.OpReadState)
	k.op.AsOf, k.op.Bodies, k.op.State = version, true, &proto.StateQuery{Keys: slices.Clone(keys)}
	got, err := c.do(ctx, k, "the reading of "+string(keys[0]))
	if err != nil {
		return Snapshot{}, err
	}
	if len(got.Documents) != len(keys) {
		return Snapshot{}, &interlock.Error{
			Code: interlock.CodeInternal, At: got.at,
			Message: fmt.Sprintf("the server returned %d documents for %d keys", len(got.Documents), len(keys)),
		}
	}
	return Snapshot{Version: got.Version, Documents: cloneDocuments(got.Documents), At: got.at}, nil
}

// ListRequest selects the documents that are listed.
type ListRequest struct {
	Prefix string        // of their keys; "" for all of the namespace
	After  interlock.Key // begin after this key
	Bodies bool          // with their bodies
}

// List lists documents in the order of their keys. It asks for more as it goes, so
// each part is of a moment of its own. After an error nothing more comes.
func (c *Client) List(ctx context.Context, l ListRequest) iter.Seq2[interlock.Document, error] {
	return func(yield func(interlock.Document, error) bool) {
		for after := l.After; ; {
			if ctx.Err() != nil {
				yield(interlock.Document{}, context.Cause(ctx))
				return
			}
			k := c.newCall(proto.OpReadState)
			k.op.Prefix, k.op.Bodies, k.op.State = l.Prefix, l.Bodies, &proto.StateQuery{After: after}
			got, err := c.do(ctx, k, "the list of documents")
			if err != nil {
				yield(interlock.Document{}, err)
				return
			}
			for _, doc := range cloneDocuments(got.Documents) {
				if !yield(doc, nil) {
					return
				}
				after = doc.Key
			}
			if !got.More || len(got.Documents) == 0 {
				return
			}
		}
	}
}

// History returns the remembered editions of a key's document, the newest first, bodies
// included; trimmed reports that there were more. Deletions are in it, too.
func (c *Client) History(
	ctx context.Context, key interlock.Key,
) (versions []interlock.Document, trimmed bool, err error) {
	k := c.newCall(proto.OpReadHistory)
	k.op.Key, k.op.Bodies = key, true
	got, err := c.do(ctx, k, "the history of "+string(key))
	if err != nil {
		return nil, false, err
	}
	return cloneDocuments(got.Documents), got.More, nil
}

// cloneDocuments makes documents that share no memory: in one process, they are the
// server's own.
func cloneDocuments(list []interlock.Document) []interlock.Document {
	clones := make([]interlock.Document, len(list))
	for i, doc := range list {
		doc.Body = bytes.Clone(doc.Body)
		clones[i] = doc
	}
	return clones
}
