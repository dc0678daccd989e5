package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	dialTimeout = 300 * time.Millisecond
	maxAnswer   = 1 << 20
	maxHead     = 64 << 10 // bytes of its head, with those of chunks
	// defaultServer is a server on this machine that was started without an address.
	defaultServer = "127.0.0.1:7420"
)

// request is a call of the server.
type request struct {
	path                  string
	headers               []string // lines without their end
	body                  []byte
	credential, namespace string
	until                 time.Time
}

// addresses reads a list of servers, "" for the default one.
func addresses(list string) (hosts []string, err error) {
	if list == "" {
		return []string{defaultServer}, nil
	}
	for text := range strings.SplitSeq(list, ",") {
		host, ok := hostOf(text)
		if !ok {
			return nil, fmt.Errorf("INTERLOCK_URL: %q is not the address of a server, such as http://%s", text, defaultServer)
		}
		hosts = append(hosts, host)
	}
	return hosts, nil
}

// hostOf returns host:port of a server's address.
func hostOf(text string) (string, bool) {
	text = strings.TrimRight(strings.TrimSpace(text), "/")
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" || u.Hostname() == "" || u.Path != "" || u.User != nil {
		return "", false
	}
	port := u.Port()
	if port == "" {
		port = "80"
	}
	return net.JoinHostPort(u.Hostname(), port), true
}

// visit asks the servers in their order, the one that a standby names first if it is on the list:
// the credential must not go to an address of a server's choice.
func (r *request) visit(servers []string) (answer []byte, err error) {
	for queue := slices.Clone(servers); len(queue) > 0; {
		server := queue[0]
		queue = queue[1:]
		if answer, err = r.ask(server); err == nil {
			return answer, nil
		}
		refused, ok := errors.AsType[*refusal](err)
		if ok && !refused.elsewhere() {
			return nil, err
		}
		if ok {
			if i := slices.Index(queue, refused.active()); i > 0 {
				queue[0], queue[i] = queue[i], queue[0]
			}
		}
		if !time.Now().Before(r.until) {
			break
		}
	}
	return nil, err
}

// ask makes the call at one server.
func (r *request) ask(server string) ([]byte, error) {
	dialer := net.Dialer{Timeout: dialTimeout, Deadline: r.until}
	conn, err := dialer.Dial("tcp", server)
	if err != nil {
		return nil, fmt.Errorf("no server answers at %s: %w", server, root(err))
	}
	defer conn.Close()
	answer, err := r.exchange(conn, server)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, fmt.Errorf("the server at %s did not answer in time", server)
	}
	return answer, err
}

// exchange writes the request and reads the answer.
func (r *request) exchange(conn net.Conn, server string) ([]byte, error) {
	if err := conn.SetDeadline(r.until); err != nil {
		return nil, err
	}
	lines := append([]string{
		"POST " + r.path + " HTTP/1.1", "Host: " + server, "User-Agent: interlock-hook/" + release, "Connection: close",
		"Content-Type: application/json", "Content-Length: " + strconv.Itoa(len(r.body)),
	}, r.headers...)
	if r.credential != "" {
		lines = append(lines, "Authorization: Bearer "+r.credential)
	}
	if r.namespace != "" {
		lines = append(lines, "Interlock-Namespace: "+r.namespace)
	}
	for _, line := range lines {
		if strings.ContainsFunc(line, func(c rune) bool { return c < ' ' || c == 0x7f }) {
			return nil, fmt.Errorf("%s has a control character", strings.SplitN(line, ":", 2)[0])
		}
	}
	message := append([]byte(strings.Join(lines, "\r\n")+"\r\n\r\n"), r.body...)
	_, failed := conn.Write(message)
	// A server that refuses the head may close the connection before it has read the body.
	status, body, err := readAnswer(bufio.NewReader(io.LimitReader(conn, maxAnswer+maxHead)))
	switch {
	case err != nil && failed != nil:
		return nil, fmt.Errorf("ask the server at %s: %w", server, root(failed))
	case err != nil:
		return nil, fmt.Errorf("the server at %s gave no whole answer: %w", server, root(err))
	case status == 200 || status == 204:
		return body, nil
	}
	return nil, &refusal{server: server, status: status, body: body}
}

// readAnswer reads an HTTP answer with its body.
func readAnswer(in *bufio.Reader) (status int, body []byte, err error) {
	head := textproto.NewReader(in)
	line, err := head.ReadLine()
	if err != nil {
		return 0, nil, err
	}
	version, rest, _ := strings.Cut(line, " ")
	code, _, _ := strings.Cut(rest, " ")
	if status, err = strconv.Atoi(code); err != nil || len(code) != 3 || !strings.HasPrefix(version, "HTTP/1.") {
		return 0, nil, errors.New("what answers does not speak HTTP/1.1")
	}
	header, err := head.ReadMIMEHeader()
	if err != nil {
		return 0, nil, err
	}
	if status < 200 {
		return readAnswer(in)
	}
	var content io.Reader = in // up to the end of the connection
	if status == 204 || status == 304 {
		return status, nil, nil
	}
	if strings.EqualFold(header.Get("Transfer-Encoding"), "chunked") {
		content = &chunks{in: in}
	} else if text := header.Get("Content-Length"); text != "" {
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return 0, nil, errors.New("the length of the answer is no number")
		}
		body = make([]byte, min(n, maxAnswer+1))
		_, err = io.ReadFull(in, body)
		return status, body, bounded(body, err)
	}
	body, err = io.ReadAll(io.LimitReader(content, maxAnswer+1))
	return status, body, bounded(body, err)
}

func bounded(body []byte, err error) error {
	if err == nil && len(body) > maxAnswer {
		err = errors.New("the answer is too long")
	}
	return err
}

// chunks reads a body in chunks.
type chunks struct {
	in   *bufio.Reader
	left uint64
	end  bool
}

func (c *chunks) Read(p []byte) (int, error) {
	if c.left == 0 && !c.end {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return 0, io.ErrUnexpectedEOF
		}
		size, _, _ := strings.Cut(strings.TrimSpace(string(line)), ";")
		if c.left, err = strconv.ParseUint(size, 16, 32); err != nil {
			return 0, errors.New("the length of a chunk is no number")
		}
		c.end = c.left == 0
	}
	if c.end {
		return 0, io.EOF // what follows are trailers
	}
	n, err := c.in.Read(p[:min(uint64(len(p)), c.left)])
	c.left -= uint64(n)
	if err != nil {
		return n, io.ErrUnexpectedEOF
	}
	if c.left == 0 {
		if _, err := c.in.Discard(2); err != nil { // the end of the line
			return n, io.ErrUnexpectedEOF
		}
	}
	return n, nil
}

// refusal is an answer that is none to the harness.
type refusal struct {
	server string
	status int
	body   []byte
}

// problem is the document of a refusal.
type problem struct {
	Code   string `json:"code"`
	Detail string `json:"detail"`
	Active struct {
		HTTP string `json:"http"`
	} `json:"active"`
}

func (e *refusal) problem() (p problem) {
	_ = json.Unmarshal(e.body, &p) // what is no problem document has no field of one
	return p
}

func (e *refusal) Error() string {
	if p := e.problem(); p.Code != "" {
		return fmt.Sprintf("the server at %s refused the event (%s): %s", e.server, p.Code, p.Detail)
	}
	return fmt.Sprintf("what answers at %s has no hooks (status %d)", e.server, e.status)
}

// elsewhere reports whether another server of the cluster may take the event.
func (e *refusal) elsewhere() bool {
	code := e.problem().Code
	return e.status == 503 && (code == "not_owner" || code == "shutting_down")
}

// active is the server that a standby names, "" if it names none.
func (e *refusal) active() string {
	host, _ := hostOf(e.problem().Active.HTTP)
	return host
}

// root is the innermost error.
func root(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}
