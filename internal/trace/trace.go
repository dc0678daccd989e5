package trace

import (
	"bufio"
	"bytes"
	"compress/gzip"
	_ "embed"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

// The rates that turn tokens into time. They are an assumption: the data has
// tokens and no durations.
const (
	Overhead      = 500 * time.Millisecond // network, queue and tool call
	ContextRate   = 5000                   // context tokens read per second
	GeneratedRate = 50                     // tokens written per second
)

// Rates names the rates, for output with a figure that rests on them.
const Rates = "0.5 s + context tokens / 5000 per s + generated tokens / 50 per s"

// Source names the data, as its licence asks.
const Source = "Azure Public Dataset, LLM inference trace 2023 (CC BY 4.0)"

// Request is one row of the data.
type Request struct {
	At        time.Duration // when it came, since the first row
	Context   int           // tokens of its prompt
	Generated int           // tokens of its answer
}

// Think is how long an agent that sends this request waits for the answer.
func (r Request) Think() time.Duration {
	return Overhead +
		time.Duration(r.Context)*time.Second/ContextRate +
		time.Duration(r.Generated)*time.Second/GeneratedRate
}

var (
	//go:embed data/conv.csv.gz
	conversation []byte
	//go:embed data/code.csv.gz
	code []byte
)

// Conversation is the hour of the conversation service, in the order of arrival.
func Conversation() ([]Request, error) { return read(conversation) }

// Code is the hour of the coding service, in the order of arrival.
func Code() ([]Request, error) { return read(code) }

// Named is the hour called "conversation", which "" stands for, or "code"; or else what is
// in a file of that name, which has the form of the published ones: comma-separated, the
// first line TIMESTAMP,ContextTokens,GeneratedTokens, then a row for each request in the
// order of arrival, its time as 2023-11-16 18:15:46.6805900.
func Named(name string) ([]Request, error) {
	switch name {
	case "", "conversation":
		return Conversation()
	case "code":
		return Code()
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf(
			"read the trace: %w; without a file, the recorded hours are called conversation and code, and others have the "+
				"columns %s",
			err, header,
		)
	}
	defer func() { _ = f.Close() }()
	return parseAll(f)
}

// header is the first line of the published files.
const header = "TIMESTAMP,ContextTokens,GeneratedTokens"

func read(packed []byte) ([]Request, error) {
	unpacked, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("read the trace: %w", err)
	}
	return parseAll(unpacked)
}

func parseAll(r io.Reader) ([]Request, error) {
	lines := bufio.NewScanner(r)
	if !lines.Scan() || strings.TrimSpace(lines.Text()) != header {
		return nil, fmt.Errorf("read the trace: the first line is %q, want %q", lines.Text(), header)
	}
	var (
		requests []Request
		first    time.Time
	)
	for lines.Scan() {
		at, r, err := parse(strings.TrimSpace(lines.Text()))
		if err != nil {
			return nil, fmt.Errorf("read the trace, row %d: %w", len(requests)+1, err)
		}
		if len(requests) == 0 {
			first = at
		}
		r.At = at.Sub(first)
		requests = append(requests, r)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the trace: %w", err)
	}
	return requests, nil
}

func parse(line string) (at time.Time, r Request, err error) {
	fields := strings.Split(line, ",")
	if len(fields) != 3 {
		return at, r, fmt.Errorf("%d fields, want 3", len(fields))
	}
	if at, err = time.Parse("2006-01-02 15:04:05.0000000", fields[0]); err != nil {
		return at, r, err
	}
	if r.Context, err = strconv.Atoi(fields[1]); err != nil {
		return at, r, err
	}
	r.Generated, err = strconv.Atoi(fields[2])
	return at, r, err
}
