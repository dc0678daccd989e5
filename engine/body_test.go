package engine_test

import (
	"bytes"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/internal/prose"
)

// largeJSON is a JSON string of so many bytes.
func largeJSON(size int) []byte {
	b := bytes.Repeat([]byte{'x'}, size)
	b[0], b[size-1] = '"', '"'
	return b
}

// TestPreparedBodies: a step reads no body that was read in advance, and believes that only
// of the bytes that were read.
func TestPreparedBodies(t *testing.T) {
	const size = 4 << 10
	for _, prepared := range []bool{false, true} {
		for _, replaced := range []bool{false, true} {
			l := newLoad(t)
			s := l.open(interlock.MaxTTL)
			l.step(&engine.SetQueue{Head: l.head(s), Queue: interlock.TaskQueue{Name: "q"}})
			body := func() []byte { return largeJSON(size) }
			put := &engine.Commit{Head: l.head(s), CommitRequest: interlock.CommitRequest{
				Writes: []interlock.Write{{Key: "a", Op: interlock.Put}},
			}}
			merge := &engine.Commit{Head: l.head(s), CommitRequest: interlock.CommitRequest{
				Writes: []interlock.Write{{Key: "b", Op: interlock.Merge}},
			}}
			submit := &engine.Submit{Head: l.head(s), Task: engine.TaskSpec{
				ID: l.id(), TaskSpec: interlock.TaskSpec{Queue: "q", Claims: []interlock.Claim{{Key: "k"}}},
			}}
			for _, x := range []struct {
				cmd  engine.Command
				body *[]byte
			}{{put, &put.Writes[0].Body}, {merge, &merge.Writes[0].Body}, {submit, &submit.Task.Payload}} {
				if *x.body = body(); prepared {
					engine.Prepare(x.cmd)
				}
				if replaced {
					*x.body = body()
				}
				(*x.body)[0] = '!'
				eff := l.step(x.cmd)
				if unread := eff.Outcome == engine.Done; unread != (prepared && !replaced) {
					t.Errorf(
						"prepared %v, replaced %v: a %T with a body that is not JSON is %v %s", prepared, replaced, x.cmd, eff.Outcome,
						prose.Sentence(eff.Message),
					)
				}
				(*x.body)[0] = '"'
			}
		}
	}
}

// TestBodiesCount: what a commit makes counts as objects by its size.
func TestBodiesCount(t *testing.T) {
	l := newLoad(t)
	const size = 1 << 18
	l.step(&engine.Commit{Head: l.head(interlock.SessionID{}), CommitRequest: interlock.CommitRequest{
		Writes: []interlock.Write{{Key: "d", Op: interlock.Merge, Body: largeJSON(size)}},
	}})
	if n := l.e.Objects(); n < size/engine.ObjectBytes {
		t.Errorf("%d objects for a document of %d bytes", n, size)
	}
}

// TestPreparedMerge: a patch that was read in advance has the same result.
func TestPreparedMerge(t *testing.T) {
	spaces := bytes.Repeat([]byte{' '}, 2<<10)
	for _, c := range rfc7396 {
		var got [2]string
		for i := range got {
			l := newLoad(t)
			s := l.open(interlock.MaxTTL)
			l.step(&engine.Commit{Head: l.head(s), CommitRequest: interlock.CommitRequest{
				Writes: []interlock.Write{{Key: "d", Op: interlock.Put, Body: []byte(c[0])}},
			}})
			patch := &engine.Commit{
				Head: l.head(s), CommitRequest: interlock.CommitRequest{
					Reads:  []interlock.Read{{Key: "d", Present: true}},
					Writes: []interlock.Write{{Key: "d", Op: interlock.Merge, Body: append([]byte(c[1]), spaces...)}},
				},
			}
			if i > 0 {
				engine.Prepare(patch)
			}
			if eff := l.step(patch); eff.Outcome != engine.Done {
				t.Fatal(prose.Sentence(eff.Message))
			}
			docs, _, err := l.e.Documents("default", []interlock.Key{"d"}, true)
			if err != nil {
				t.Fatal(err)
			}
			got[i] = string(docs[0].Body)
		}
		if got[0] != c[2] || got[1] != c[2] {
			t.Errorf("%s with %s is %s, and %s with a patch that was read before; want %s", c[0], c[1], got[0], got[1], c[2])
		}
	}
}
