package main

import (
	"encoding/json"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
)

// taskFlags holds the flags of a task, or of a message.
type taskFlags struct {
	purpose     string
	priority    int
	delay       time.Duration
	deadline    time.Duration
	maxAttempts int
	question    string
	questionFlags
	caller
	id string
}

// caller is the name under which something is submitted, sent, asked or waited for.
type caller struct{ agent, session, flow string }

func (c *caller) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&c.agent, "agent", "", "your `name`, for others to read (default: user@host:pid)")
	bind(f, "agent", "")
	f.StringVar(&c.session, "session", "", "the `session` that you act for")
	bind(f, "session", "")
	f.StringVar(&c.flow, "flow", "", "the `flow` of that session which waits for the end")
	bind(f, "flow", "")
}

func (c *caller) check() error {
	if c.session == "" {
		return nil
	}
	if _, err := interlock.ParseSessionID(c.session); err != nil {
		// The text is a secret if it is nearly right, so it is not repeated.
		return usage(
			"--session: not a session: want s_ and 32 hexadecimal digits, as in INTERLOCK_SESSION below `interlock run`",
		)
	}
	return nil
}

func (c *caller) fields(body map[string]any) {
	switch {
	case c.session != "":
		body["session"] = c.session
		if c.flow != "" {
			body["flow"] = c.flow
		}
	case c.agent != "":
		body["agent"] = c.agent
	default:
		body["agent"] = ownName()
	}
}

// questionFlags is the flags of a question to a person.
type questionFlags struct {
	limit   time.Duration
	onLimit choice
	reads   []string
}

// flags adds them under their names, each behind prefix.
func (q *questionFlags) flags(cmd *cobra.Command, prefix string) {
	f := cmd.Flags()
	f.DurationVar(&q.limit, prefix+"for", 0, "how long a person may take to answer (default: any time)")
	q.onLimit.among(
		cmd, prefix+"on-limit", "the answer that counts without one", interlock.Denied.String(), interlock.Approved.String(),
	)
	f.StringArrayVar(
		&q.reads, "read", nil,
		"a document that was read for it, `KEY=VERSION`: the person sees later changes; may be repeated",
	)
}

// fields is the question in the form of the HTTP API.
func (q *questionFlags) fields(text string) (map[string]any, error) {
	if err := checkDurations(duration{"--for", q.limit, 0, interlock.MaxDelay}); err != nil {
		return nil, err
	}
	body := map[string]any{"question": text}
	milliseconds(body, "limit_ms", q.limit)
	if q.onLimit.value != "" {
		body["on_limit"] = q.onLimit.value
	}
	reads, err := readsOf(q.reads)
	if len(reads) > 0 {
		body["reads"] = reads
	}
	return body, err
}

// readsOf reads KEY=VERSION. A key may have a = of its own, so the last one counts.
func readsOf(list []string) (reads []any, err error) {
	for _, text := range list {
		i := strings.LastIndexByte(text, '=')
		if i <= 0 || i == len(text)-1 {
			return nil, usage(
				"--read %s: want KEY=VERSION, such as account:12345=41, or KEY=0 for one that had nothing", clean(text),
			)
		}
		read := map[string]any{"key": text[:i], "version": text[i+1:]}
		if text[i+1:] == "0" {
			read = map[string]any{"key": text[:i], "absent": true}
		}
		reads = append(reads, read)
	}
	return reads, nil
}

func (s *taskFlags) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.purpose, "purpose", "", "its purpose, for others to read")
	f.IntVar(&s.priority, "priority", 0, "from -100 to 100; a higher one stands further ahead in line")
	f.DurationVar(&s.delay, "in", 0, "it may not run before this time has passed, such as 60s")
	f.DurationVar(
		&s.deadline, "deadline", 0, "if it is not done within this time it is dead (default: it has all the time)",
	)
	f.IntVar(&s.maxAttempts, "max-attempts", 0, "how often it is tried (default: the queue's)")
	f.StringVar(&s.question, "question", "", "have a person answer this before it runs: interlock approve")
	s.questionFlags.flags(cmd, "question-")
	s.caller.flags(cmd)
	f.StringVar(&s.id, "id", "", "an `id` of your own: two submissions with one id make one task")
}

// fields adds to a body what the flags say.
func (s *taskFlags) fields(body map[string]any) error {
	if err := s.caller.check(); err != nil {
		return err
	}
	if s.priority < -interlock.MaxPriority || s.priority > interlock.MaxPriority {
		return usage("--priority %d: want a number from %d to %d", s.priority, -interlock.MaxPriority, interlock.MaxPriority)
	}
	if s.maxAttempts < 0 || s.maxAttempts > interlock.MaxAttempts {
		return usage("--max-attempts %d: want a number from 1 to %d", s.maxAttempts, interlock.MaxAttempts)
	}
	if err := checkDurations(
		duration{"--in", s.delay, 0, interlock.MaxDelay}, duration{"--deadline", s.deadline, 0, interlock.MaxDelay},
	); err != nil {
		return err
	}
	if s.question == "" && (s.limit != 0 || s.onLimit.value != "" || len(s.reads) > 0) {
		return usage("--question-for, --question-on-limit and --read are about a question: add --question")
	}
	s.caller.fields(body)
	if s.purpose != "" {
		body["purpose"] = s.purpose
	}
	if s.priority != 0 {
		body["priority"] = s.priority
	}
	if s.maxAttempts != 0 {
		body["max_attempts"] = s.maxAttempts
	}
	milliseconds(body, "delay_ms", s.delay)
	milliseconds(body, "deadline_ms", s.deadline)
	if s.question != "" {
		approval, err := s.questionFlags.fields(s.question)
		if err != nil {
			return err
		}
		body["approval"] = approval
	}
	if s.id == "" {
		s.id = freshID()
	}
	return nil
}

// jsonArg returns the JSON of an argument: JSON, @FILE with it, or - for standard input.
func jsonArg(in io.Reader, text, what string, most int) (json.RawMessage, error) {
	content := []byte(text)
	switch {
	case text == "-":
		var err error
		if content, err = readAll(in, "-"); err != nil {
			return nil, err
		}
	case strings.HasPrefix(text, "@"):
		var err error
		if content, err = os.ReadFile(text[1:]); err != nil {
			return nil, exitWith(exitUsage, err)
		}
	}
	switch {
	case !json.Valid(content):
		return nil, usage("%s is not JSON: use JSON, such as '{\"cents\": 2000}', @FILE, or - for standard input", what)
	case len(content) > most:
		return nil, usage("%s has %s, of at most %s", what, bytesText(int64(len(content))), bytesText(int64(most)))
	}
	return content, nil
}
