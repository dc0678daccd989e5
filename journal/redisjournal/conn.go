package redisjournal

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/interlockdev/interlock"
)

// conn is one connection in the protocol RESP2. It carries one batch of commands at a time.
type conn struct {
	net.Conn
	addr   string
	server server // what it was when the connection was made
	r      *bufio.Reader
	broken bool // an answer is missing
}

// refusal is an error that the server answered. It begins with a code in capitals.
type refusal string

func (r refusal) Error() string { return string(r) }

// errProtocol: the other side speaks something else.
var errProtocol = errors.New("the answer is not in the protocol of Redis")

// longestAnswer bounds the parts of an answer: a page of appends has less.
const longestAnswer = 512 << 20

// dial connects, without logging in.
func dial(ctx context.Context, addr string, security *tls.Config) (*conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	if security != nil {
		host, _, _ := net.SplitHostPort(addr)
		security = security.Clone()
		security.ServerName = host
		secured := tls.Client(c, security)
		if err := secured.HandshakeContext(ctx); err != nil {
			c.Close()
			return nil, err
		}
		c = secured
	}
	return &conn{Conn: c, addr: addr, r: bufio.NewReader(c)}, nil
}

// command is one command with its arguments: strings, []byte or integers.
type command []any

// do sends commands at once and reads as many answers. An answer is nil, int64, []byte, []any or a refusal.
func (c *conn) do(ctx context.Context, commands ...command) ([]any, error) {
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	c.broken = true
	var buf []byte
	for _, command := range commands {
		buf = append(strconv.AppendInt(append(buf, '*'), int64(len(command)), 10), "\r\n"...)
		for _, arg := range command {
			buf = appendBulk(buf, arg)
		}
	}
	if _, err := c.Write(buf); err != nil {
		return nil, because(ctx, err)
	}
	answers := make([]any, len(commands))
	for i := range answers {
		var err error
		if answers[i], err = c.answer(0); err != nil {
			return nil, because(ctx, err)
		}
	}
	c.broken = !stop() // the deadline may have passed
	return answers, nil
}

// because prefers the reason why a connection was given up.
func because(ctx context.Context, err error) error {
	if ended := ctx.Err(); ended != nil {
		return fmt.Errorf("no answer: %w", ended)
	}
	return err
}

func appendBulk(buf []byte, arg any) []byte {
	var text []byte
	switch v := arg.(type) {
	case []byte:
		text = v
	case string:
		text = []byte(v)
	case int:
		text = strconv.AppendInt(nil, int64(v), 10)
	case int64:
		text = strconv.AppendInt(nil, v, 10)
	case uint32:
		text = strconv.AppendUint(nil, uint64(v), 10)
	case bool:
		text = []byte{'0'}
		if v {
			text = []byte{'1'}
		}
	case interlock.Epoch:
		text = strconv.AppendUint(nil, uint64(v), 10)
	case interlock.Index:
		text = strconv.AppendUint(nil, uint64(v), 10)
	default:
		panic("redisjournal: an argument of this type has no form")
	}
	buf = append(strconv.AppendInt(append(buf, '$'), int64(len(text)), 10), "\r\n"...)
	return append(append(buf, text...), "\r\n"...)
}

// deepest bounds how arrays contain each other.
const deepest = 8

func (c *conn) answer(depth int) (any, error) {
	line, err := c.r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) || err == nil && (len(line) < 3 || line[len(line)-2] != '\r') {
		return nil, errProtocol
	}
	if err != nil {
		return nil, err
	}
	kind, text := line[0], string(line[1:len(line)-2])
	switch kind {
	case '+':
		return []byte(text), nil
	case '-':
		return refusal(text), nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil, errProtocol
	}
	switch {
	case kind == ':':
		return n, nil
	case n == -1 && (kind == '$' || kind == '*'):
		return nil, nil
	case n < 0 || n > longestAnswer || depth > deepest:
		return nil, errProtocol
	case kind == '$':
		bulk := make([]byte, n+2)
		if _, err := io.ReadFull(c.r, bulk); err != nil {
			return nil, err
		}
		return bulk[:n:n], nil
	case kind == '*':
		var list []any
		for range n {
			item, err := c.answer(depth + 1)
			if err != nil {
				return nil, err
			}
			list = append(list, item)
		}
		return list, nil
	}
	return nil, errProtocol
}

// text is an answer that is a text, and "" for every other one.
func text(answer any) string {
	b, _ := answer.([]byte)
	return string(b)
}
