package resp

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// A connection about the keys of another server is relayed there: with the client's credential, and with what it
// has said of itself before. From then on bytes pass both ways, until either side ends. The owner gets the first
// command that is about keys, and all behind it.
//
//	client ──► this door ──► the owner's door
//	                HELLO 3 AUTH user credential, CLIENT FORWARDED address
//
// A relayed connection is not relayed again. When its server is not the owner any more, it is closed instead,
// so that the client connects anew and is led to the next owner.

// reachTimeout is how long the connection to an owner may take, and its greeting.
const reachTimeout = 2 * time.Second

// relay passes the connection on to the owner of the caller's keys, if that is another server. done is false if the
// command is to be carried out, or refused, here.
func (c *client) relay(name string) (done bool) {
	cmd := commands[name]
	if cmd == nil || cmd.free || c.identify() != nil {
		return false
	}
	to, elsewhere := c.caller.Elsewhere()
	switch {
	case !elsewhere || to.RESP == "":
		return false
	case c.forwarded:
		c.over = true // after the refusal
		return false
	}
	ctx, cancel := context.WithTimeout(c.ctx, reachTimeout)
	defer cancel()
	owner, err := c.door.cfg.Dial(ctx, to.RESP)
	if err != nil {
		c.door.cfg.Log.Debug("the owner of the keys cannot be reached", "resp", to.RESP, "error", err)
		return false
	}
	defer owner.Close()
	if err := c.introduce(ctx, owner); err != nil {
		c.door.cfg.Log.Debug("the owner of the keys refuses a relayed connection", "resp", to.RESP, "error", err)
		return false
	}
	if !c.flush() || !c.deadline(time.Time{}) {
		return true
	}
	c.caller.Forwarded()
	c.count(-c.held) // the owner counts them
	c.held = 0
	go func() {
		_, _ = io.Copy(impatient{c}, owner)
		_ = c.raw.SetReadDeadline(time.Unix(1, 0)) // the owner has left: so must the client
	}()
	if _, err := owner.Write(c.in); err == nil {
		_, _ = io.Copy(owner, c.conn)
	}
	return true
}

// impatient writes to a client, which has some time to read each piece.
type impatient struct{ c *client }

func (i impatient) Write(b []byte) (int, error) {
	_ = i.c.raw.SetWriteDeadline(time.Now().Add(i.c.door.cfg.Patience))
	return i.c.conn.Write(b)
}

// introduce repeats at the owner what the client has said of itself, and waits for the answers.
func (c *client) introduce(ctx context.Context, owner net.Conn) error {
	end, _ := ctx.Deadline()
	_ = owner.SetDeadline(end)
	hello := []string{"HELLO", strconv.Itoa(c.w.version)}
	if c.bearer != "" || c.user != "" || c.namespace != "" {
		user := c.user
		if c.namespace != "" {
			user = c.namespace + "/" + c.user
		}
		if user == "" {
			user = "default"
		}
		hello = append(hello, "AUTH", user, c.bearer)
	}
	commands := [][]string{hello, {"CLIENT", "FORWARDED", c.raw.RemoteAddr().String()}}
	if c.library != "" {
		commands = append(commands, []string{"CLIENT", "SETINFO", "LIB-NAME", c.library})
	}
	if c.name != "" {
		commands = append(commands, []string{"CLIENT", "SETNAME", c.name})
	}
	var out []byte
	for _, words := range commands {
		out = appendCommand(out, words)
	}
	if _, err := owner.Write(out); err != nil {
		return err
	}
	answers := bufio.NewReaderSize(&oneByOne{owner}, 16)
	for range commands {
		if err := skipAnswer(answers); err != nil {
			return err
		}
	}
	return owner.SetDeadline(time.Time{})
}

// oneByOne reads single bytes, so that nothing behind the greeting is read.
type oneByOne struct{ r io.Reader }

func (o *oneByOne) Read(b []byte) (int, error) { return o.r.Read(b[:min(len(b), 1)]) }

func appendCommand(b []byte, words []string) []byte {
	b = fmt.Appendf(b, "*%d\r\n", len(words))
	for _, w := range words {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(w), w)
	}
	return b
}

// skipAnswer reads one answer. It is an error if the answer is one.
func skipAnswer(r *bufio.Reader) error {
	line, err := r.ReadString('\n')
	if err != nil {
		return err
	}
	line = strings.TrimRight(line, "\r\n")
	if line == "" {
		return io.ErrUnexpectedEOF
	}
	n := 0
	if strings.ContainsRune("$*%~", rune(line[0])) {
		if n, err = strconv.Atoi(line[1:]); err != nil || n > 1<<16 {
			return fmt.Errorf("unexpected answer %q", line)
		}
	}
	switch line[0] {
	case '-':
		return fmt.Errorf("%s", line[1:])
	case '$':
		if n >= 0 {
			_, err = r.Discard(n + 2)
		}
		return err
	case '%':
		n *= 2
	}
	for range max(n, 0) {
		if err := skipAnswer(r); err != nil {
			return err
		}
	}
	return nil
}
