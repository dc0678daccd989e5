package scenariotest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/test/history"
)

// stripped is the prefix that a program for Redis has before the keys.
const stripped = "lock:"

// redisTTL is the time of a lock. Nothing renews it.
const redisTTL = 3 * time.Second

// betweenTries is the pause after a key that was taken, or a server that was away.
const betweenTries = 50 * time.Millisecond

// compareAndDelete is how libraries for Redis release a lock.
const compareAndDelete = `if redis.call("get", KEYS[1]) == ARGV[1] then
    return redis.call("del", KEYS[1])
else
    return 0
end`

// redisAgent takes the hot keys as a lock of a program for Redis. The value of a lock is the ID of its acquisition.
type redisAgent struct {
	name   string
	addr   string
	record *history.Recorder
	random *rand.Rand
	calls  int
	conn   net.Conn
	in     *bufio.Reader
}

// errNil is the answer of Redis for nothing.
var errNil = errors.New("nil")

// work takes a key so many times. Broken connections are made anew.
func (a *redisAgent) work(ctx context.Context, rounds int) error {
	defer a.drop()
	for range rounds {
		if err := a.round(ctx); err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
	}
	return nil
}

func (a *redisAgent) round(ctx context.Context) error {
	key := hotKeys[a.random.IntN(len(hotKeys))]
	claims := []history.Claim{{Key: key, Mode: interlock.Exclusive}}
	op := a.begin(&history.Op{Kind: history.Acquire, Claims: claims, TTL: redisTTL})
	_, err := a.call("SET", stripped+key, op.ID, "NX", "PX", strconv.FormatInt(redisTTL.Milliseconds(), 10))
	if errors.Is(err, errNil) {
		a.record.End(op, history.Answer{Code: interlock.CodeHeld, More: 1}) // the holder is not shown
		pause(ctx, betweenTries)
		return nil
	}
	lapse := a.begin(&history.Op{Kind: history.Lapse, Lease: op.ID})
	lapse.Call = op.Call
	if err != nil {
		return a.broken(ctx, err)
	}
	fence, err := a.call("INTERLOCK.FENCE", stripped+key, op.ID)
	if err != nil {
		return a.broken(ctx, err)
	}
	number, err := strconv.ParseUint(fence, 10, 64)
	a.record.End(op, history.Answer{Granted: &history.Grant{
		Lease: op.ID, Fence: interlock.Fence(number), Claims: claims, TTL: redisTTL,
	}})
	if err != nil {
		return err
	}
	held := a.begin(&history.Op{Kind: history.Held, Lease: op.ID})
	value, err := a.call("GET", stripped+key)
	switch {
	case err != nil && !errors.Is(err, errNil):
		return a.broken(ctx, err)
	case value == op.ID:
		a.record.End(held, history.Answer{})
	default:
		a.record.End(held, history.Answer{Code: interlock.CodeExpired})
	}
	release := a.begin(&history.Op{Kind: history.Release, Lease: op.ID})
	count, err := a.call("EVAL", compareAndDelete, "1", stripped+key, op.ID)
	if err != nil {
		return a.broken(ctx, err)
	}
	answer := history.Answer{}
	if count != "1" {
		answer.Code = interlock.CodeExpired
	}
	a.record.End(release, answer)
	return nil
}

// begin records an operation.
func (a *redisAgent) begin(op *history.Op) *history.Op {
	a.calls++
	op.Client, op.ID, op.Sent = a.name, a.name+"-"+strconv.Itoa(a.calls), 1
	a.record.Begin(op)
	return op
}

// broken returns the errors that no broken connection explains. The next call makes a new connection.
func (a *redisAgent) broken(ctx context.Context, err error) error {
	if strings.HasPrefix(err.Error(), "ERR ") {
		return err
	}
	a.drop()
	pause(ctx, betweenTries)
	return ctx.Err()
}

func (a *redisAgent) drop() {
	if a.conn != nil {
		_ = a.conn.Close()
		a.conn = nil
	}
}

// call sends a command and returns its answer.
func (a *redisAgent) call(words ...string) (string, error) {
	if a.conn == nil {
		conn, err := net.Dial("tcp", a.addr)
		if err != nil {
			return "", err
		}
		a.conn, a.in = conn, bufio.NewReader(conn)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "*%d\r\n", len(words))
	for _, w := range words {
		fmt.Fprintf(&text, "$%d\r\n%s\r\n", len(w), w)
	}
	if _, err := io.WriteString(a.conn, text.String()); err != nil {
		return "", err
	}
	return a.answer()
}

// answer reads a simple answer of version 2 of the protocol.
func (a *redisAgent) answer() (string, error) {
	line, err := a.in.ReadString('\n')
	if err != nil {
		return "", err
	}
	kind, rest := line[0], strings.TrimSuffix(line[1:], "\r\n")
	switch {
	case kind == '+', kind == ':':
		return rest, nil
	case kind == '-':
		return "", errors.New(rest)
	case kind == '$' && rest != "-1":
		n, err := strconv.Atoi(rest)
		if err != nil {
			return "", err
		}
		value := make([]byte, n+2)
		_, err = io.ReadFull(a.in, value)
		return strings.TrimSuffix(string(value), "\r\n"), err
	}
	return "", errNil
}
