package client_test

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
)

// Sixteen agents count, half of them by reading and writing and half by adding, some on
// the same keys. Nothing is lost, and no version is given out twice.
func TestConcurrentUpdates(t *testing.T) {
	const agents, rounds = 16, 25
	w := inMemory(t)
	keys := []interlock.Key{"updated", "added", "both"}
	var mu sync.Mutex
	seen := map[interlock.Version]string{}
	count := func(who string, done *client.CommitResult) {
		mu.Lock()
		defer mu.Unlock()
		if other, again := seen[done.Version]; again {
			t.Errorf("version %d was given to %s and to %s", done.Version, other, who)
		}
		seen[done.Version] = who
	}
	var all sync.WaitGroup
	for i := range agents {
		c := w.dial(client.Config{Agent: fmt.Sprint("agent-", i)})
		all.Go(func() {
			var last interlock.Version
			for round := range rounds {
				key := keys[2]
				if round%2 == 0 {
					key = keys[i%2]
				}
				var done *client.CommitResult
				var err error
				if i%2 == 0 {
					done, err = c.Update(t.Context(), key, increment)
				} else {
					done, err = c.Commit(t.Context(), writing(client.Add(key, 1)))
				}
				if err != nil {
					t.Errorf("agent %d: %v", i, err)
					return
				}
				if done.Version <= last {
					t.Errorf("version %d came after %d", done.Version, last)
				}
				last = done.Version
				count(fmt.Sprintf("agent %d, round %d", i, round), done)
			}
		})
	}
	all.Wait()
	const most = (rounds + 1) / 2
	c := w.dial(client.Config{})
	for key, want := range map[interlock.Key]int{
		"updated": agents / 2 * most, "added": agents / 2 * most, "both": agents * (rounds - most),
	} {
		doc, err := c.Document(t.Context(), key)
		if err != nil || string(doc.Body) != strconv.Itoa(want) {
			t.Errorf("%s is %s instead of %d, %v", key, doc.Body, want, err)
		}
		versions, _, err := c.History(t.Context(), key)
		if err != nil || len(versions) < 2 {
			t.Errorf("%d versions of %s, %v", len(versions), key, err)
		}
		for i := 1; i < len(versions); i++ {
			newer, older := versions[i-1], versions[i]
			if newer.Version <= older.Version || number(newer) != number(older)+1 {
				t.Errorf(
					"%s went from %d (version %d) to %d (version %d)", key, number(older), older.Version, number(newer),
					newer.Version,
				)
			}
		}
	}
	if len(seen) != agents*rounds {
		t.Errorf("%d versions for %d commits", len(seen), agents*rounds)
	}
}

func number(doc interlock.Document) int {
	n, _ := strconv.Atoi(string(doc.Body))
	return n
}

func increment(old interlock.Document) (interlock.Write, error) {
	return client.Put("", strconv.AppendInt(nil, int64(number(old)+1), 10)), nil
}

// Update stops when it always comes too late, and when change returns an error.
func TestUpdatesThatGiveUp(t *testing.T) {
	crowd(t, func(s *stage) {
		a, b := s.client("a"), s.client("b")
		tries := 0
		_, err := a.Update(s.ctx, "k", func(old interlock.Document) (interlock.Write, error) {
			tries++
			s.commit(b, writing(client.Add("k", 1)))
			return client.Delete("k"), nil
		})
		if _, stale := errors.AsType[*client.StaleError](err); !stale || tries != 32 {
			t.Errorf("after %d tries: %v", tries, err)
		}
		if _, err := a.Update(
			s.ctx, "k", func(interlock.Document) (interlock.Write, error) { return interlock.Write{}, errStopped },
		); err != errStopped {
			t.Errorf("got %v", err)
		}
	})
}
