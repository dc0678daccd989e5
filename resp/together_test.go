package resp

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

// sendAll sends commands of words at once, and returns their answers.
func (r *rig) sendAll(client string, commands ...string) (answers []string) {
	r.Helper()
	p := r.peer(client)
	var b []byte
	for _, command := range commands {
		b = append(b, encode(strings.Fields(command))...)
	}
	go func() { _, _ = p.conn.Write(b) }()
	for range commands {
		answers = append(answers, r.answer(p))
	}
	return answers
}

// TestTogether: answers have the order of their commands, and so has what is done about related keys.
func TestTogether(t *testing.T) {
	for _, c := range []struct {
		name           string
		commands, want []string
	}{
		{
			"other keys",
			[]string{"SET a 1 NX EX 9", "SET held 2 NX EX 9", "SET c 3 NX EX 9", "GET d", "SET e 5 NX EX 9"},
			[]string{"+OK", "nil", "+OK", "nil", "+OK"},
		},
		{
			"one key",
			[]string{"SET a 1 NX EX 9", "SET a 2 NX EX 9", "GET a", "DEL a", "SET a 3 NX EX 9", "GET a"},
			[]string{"+OK", "nil", "$1", ":1", "+OK", "$3"},
		},
		{
			"a key below another",
			[]string{"SET repo/src 1 NX EX 9", "SET b 2 NX EX 9", "SET repo 3 NX EX 9", "DEL repo/src", "SET repo 4 NX EX 9"},
			[]string{"+OK", "+OK", "nil", ":1", "+OK"},
		},
		{
			"one key with and without the prefix",
			[]string{"SET lock:a 1 NX EX 9", "SET a 2 NX EX 9", "GET lock:a"},
			[]string{"+OK", "nil", "$1"},
		},
		{
			"commands about no key",
			[]string{"SET a 1 NX EX 9", "PING", "SET b", "SET c 1 NX EX 9", "NOSUCH", "SET d 1 NX EX 9", "EVAL x 1", "GET d"},
			[]string{"+OK", "+PONG", "-ERR wrong*", "+OK", "-ERR unknown*", "+OK", "-ERR *", "$1"},
		},
		{
			"an error among them",
			[]string{"SET a 1 NX EX 9", "SET b 1 NX EX none", "SET c 1 NX EX 9"},
			[]string{"+OK", "-ERR value is not an integer*", "+OK"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, Config{Strip: "lock:"}, func(r *rig) {
				r.wants("other", "SET held 1 NX EX 300", "+OK")
				got := r.sendAll("a", c.commands...)
				if !slices.EqualFunc(got, c.want, matches) {
					t.Errorf("answers %q\nwant    %q", got, c.want)
				}
			})
		})
	}
}

// TestTogetherShareAnAppend: commands about unrelated keys do not wait for one another.
func TestTogetherShareAnAppend(t *testing.T) {
	const many = 30
	inBubble(t, Config{}, func(r *rig) {
		var commands []string
		for i := range many {
			commands = append(commands, fmt.Sprintf("SET key-%d 1 NX EX 300", i))
		}
		r.sendAll("a", commands...) // more comes than there is room for: now there is
		before, hold := r.shard.Came(), r.store.Hold()
		for i, command := range commands {
			commands[i] = strings.Replace(command, "key", "other", 1)
		}
		answers := make(chan []string)
		go func() { answers <- r.sendAll("a", commands...) }()
		synctest.Wait()
		if came := int(r.shard.Came() - before); came < many/2 {
			t.Errorf("%d commands are under way while nothing is written, want those of one read", came)
		}
		hold.Release()
		for i, got := range <-answers {
			if got != "+OK" {
				t.Errorf("answer %d is %s", i, got)
			}
		}
	})
}

// TestTogetherUnderOneOwner: commands beside others have the rights and the name of their connection.
func TestTogetherUnderOneOwner(t *testing.T) {
	inBubble(t, Config{}, func(r *rig) {
		r.wants("a", "CLIENT SETNAME ann", "+OK")
		r.wants("a", "SET x 1 NX EX 300", "+OK")
		if got := r.sendAll("a", "SET a 1 NX EX 300", "SET b 1 NX EX 300", "SET c 1 NX EX 300"); slices.Contains(got, "nil") {
			t.Fatal(got)
		}
		for _, key := range []string{"a", "b", "c"} {
			if _, body := r.http("GET", "/v1/keys/"+key, ""); !strings.Contains(body, `"agent":"redis:ann"`) {
				t.Errorf("key %s: %s", key, body)
			}
		}
		for i, got := range r.sendAll("b", "DEL a", "DEL b", "DEL c") {
			if !strings.HasPrefix(got, "-ERR key "+string(rune('a'+i))+" is held by redis:ann, ") {
				t.Errorf("a foreign connection deletes: %s", got)
			}
		}
		if got := r.sendAll("a", "DEL a", "DEL b", "DEL c"); !slices.Equal(got, []string{":1", ":1", ":1"}) {
			t.Errorf("its own connection deletes: %q", got)
		}
	})
}

// TestDeleteKeysOfOneLease: commands that each take a key out of the same lease do not undo one another.
func TestDeleteKeysOfOneLease(t *testing.T) {
	inBubble(t, Config{}, func(r *rig) {
		if got := r.do("a", "EVAL", kindText(t, "take-all"), "3", "l", "m", "n", "one", "30000"); got != ":3" {
			t.Fatal(got)
		}
		if got := r.sendAll("a", "DEL l", "DEL m", "DEL n"); !slices.Equal(got, []string{":1", ":1", ":1"}) {
			t.Errorf("answers %q", got)
		}
		r.wants("b", "EXISTS l m n", ":0")
	})
}

// TestTTLOfOneLease: keys of one lease have one ttl. A shorter one for some of them is refused, since it would end the
// others early.
func TestTTLOfOneLease(t *testing.T) {
	inBubble(t, Config{}, func(r *rig) {
		renewAll := kindText(t, "renew-all")
		r.do("a", "EVAL", kindText(t, "take-all"), "3", "l", "m", "n", "one", "30000")
		r.wants("a", "EXPIRE l 20", "-ERR key l is one of 3 that were taken together, *")
		for _, keys := range [][]string{{"1", "l"}, {"2", "l", "m"}} {
			got := r.do("a", append(append([]string{"EVAL", renewAll}, keys...), "one", "20000")...)
			if !matches(got, "-ERR key l is one of 3 *") {
				t.Error(got)
			}
		}
		r.wants("a", "EXPIRE l 40", ":1")
		if got := r.do("a", "EVAL", renewAll, "3", "l", "m", "n", "one", "20000"); got != ":3" {
			t.Error(got)
		}
		r.wants("a", "DEL m", ":1")
		r.wants("a", "DEL l", ":1")
		r.wants("a", "EXPIRE n 10", ":1")
		r.wants("a", "TTL n", ":10")
	})
}

// TestTogetherBroken: an internal error in one of them ends the connection behind the answers before it.
func TestTogetherBroken(t *testing.T) {
	inBubble(t, Config{Log: slog.New(slog.DiscardHandler)}, func(r *rig) {
		r.wants("a", "SET first 1 NX EX 300", "+OK")
		r.wants("b", "PING", "+PONG")
		broken := &command{1, 1, 1, false, func(*client, [][]byte) error { panic("broken") }}
		commands["BROKEN"] = broken
		defer delete(commands, "BROKEN")
		r.send("a", slices.Concat(
			encode([]string{"SET", "a", "1", "NX", "EX", "300"}), encode([]string{"BROKEN", "b"}),
			encode([]string{"SET", "c", "1", "NX", "EX", "300"}),
		))
		if got := r.answer(r.peer("a")); got != "+OK" {
			t.Error(got)
		}
		if got := r.ends("a"); got != "" {
			t.Errorf("after the error: %q", got)
		}
		r.wants("b", "GET a", "$1")
	})
}

// TestTogetherInPieces: a command that has come in part is carried out when the rest has come.
func TestTogetherInPieces(t *testing.T) {
	inBubble(t, Config{}, func(r *rig) {
		r.wants("a", "GET k", "nil")
		b := slices.Concat(
			encode([]string{"SET", "a", "1", "NX", "EX", "300"}),
			encode([]string{"SET", "b", strings.Repeat("v", 400), "NX", "EX", "300"}),
			encode([]string{"SET", "c", "1", "NX", "EX", "300"}),
		)
		conn := r.peer("a").conn
		go func() { _, _ = conn.Write(b[:len(b)-10]) }()
		for range 2 {
			if got := r.answer(r.peer("a")); got != "+OK" {
				t.Error(got)
			}
		}
		synctest.Wait()
		r.send("a", b[len(b)-10:])
		if got := r.answer(r.peer("a")); got != "+OK" {
			t.Error(got)
		}
	})
}
