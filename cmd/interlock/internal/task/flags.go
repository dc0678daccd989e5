package task

import (
	"cmp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/api"
)

// Flags holds the flags of a task, or of a message.
type Flags struct {
	purpose     string
	priority    int
	delay       time.Duration
	deadline    time.Duration
	maxAttempts int
	question    string
	questionFlags
	Caller
	ID string
}

// Caller is the name under which something is submitted, sent, asked or waited for.
type Caller struct{ agent, session, flow string }

func (c *Caller) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	cli.AgentVar(f, &c.agent, "your `name`, for others to read")
	f.StringVar(&c.session, "session", "", "the `session` that you act for")
	cli.Bind(f, "session", "")
	f.StringVar(&c.flow, "flow", "", "the `flow` of that session which waits for the end")
	cli.Bind(f, "flow", "")
}

func (c *Caller) check() error {
	if c.session == "" {
		return nil
	}
	if _, err := interlock.ParseSessionID(c.session); err != nil {
		// The text is a secret if it is nearly right, so it is not repeated.
		return cli.Usagef(
			"--session: not a session: want s_ and 32 hexadecimal digits, as in INTERLOCK_SESSION below `interlock run`",
		)
	}
	return nil
}

// sender returns the name in the form of the HTTP API.
func (c *Caller) sender() api.Sender {
	if c.session != "" {
		return api.Sender{Session: c.session, Flow: c.flow}
	}
	return api.Sender{Agent: cmp.Or(c.agent, cli.OwnName())}
}

// questionFlags is the flags of a question to a person.
type questionFlags struct {
	limit   time.Duration
	onLimit cli.Choice
	reads   []string
}

// flags adds them under their names, each behind prefix.
func (q *questionFlags) flags(cmd *cobra.Command, prefix string) {
	f := cmd.Flags()
	cli.DurationVar(f, &q.limit, prefix+"for", 0, "how long a person may take to answer (default: any time)")
	q.onLimit.Among(
		cmd, prefix+"on-limit", "the answer at the time limit", interlock.Denied.String(), interlock.Approved.String(),
	)
	f.StringArrayVar(
		&q.reads, "read", nil,
		"a document that was read for it, `KEY=VERSION`: the person sees later changes; may be repeated",
	)
}

// question returns the question in the form of the HTTP API.
func (q *questionFlags) question(text string) (*api.Question, error) {
	if err := cli.CheckDurations(cli.Duration("--for", q.limit, 0, interlock.MaxDelay)); err != nil {
		return nil, err
	}
	reads, err := readsOf(q.reads)
	return &api.Question{Text: text, Limit: q.limit.Milliseconds(), OnLimit: q.onLimit.Value, Reads: reads}, err
}

// readsOf reads KEY=VERSION. A key may have a = of its own, so the last one counts.
func readsOf(list []string) (reads []api.ReadRequest, err error) {
	for _, text := range list {
		i := strings.LastIndexByte(text, '=')
		if i <= 0 || i == len(text)-1 {
			return nil, cli.Usagef(
				"--read %s: want KEY=VERSION, such as account:12345=41, or KEY=0 for one that had nothing", cli.Clean(text),
			)
		}
		read := api.ReadRequest{Key: interlock.Key(text[:i])}
		var err error
		if read.Version, err = cli.ParseVersion("--read "+cli.Clean(text[:i]), text[i+1:]); err != nil {
			return nil, err
		}
		if *read.Version == 0 {
			read.Version, read.Absent = nil, true
		}
		reads = append(reads, read)
	}
	return reads, nil
}

// Define adds the flags to a command.
func (s *Flags) Define(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.purpose, "purpose", "", "its purpose, for others to read")
	f.IntVar(&s.priority, "priority", 0, "from -100 to 100; a higher one stands further ahead in line")
	cli.DurationVar(f, &s.delay, "in", 0, "it may not run before this time has passed, such as 60s")
	cli.DurationVar(
		f, &s.deadline, "deadline", 0, "if it is not done within this time it is dead (default: no deadline)",
	)
	f.IntVar(&s.maxAttempts, "max-attempts", 0, "how often it is tried (default: the queue's)")
	f.StringVar(&s.question, "question", "", "a question to a person before it runs: interlock approval approve")
	s.questionFlags.flags(cmd, "question-")
	s.Caller.flags(cmd)
	f.StringVar(&s.ID, "id", "", "an `id` of your own: two submissions with one id make one task")
}

// Fill writes the flags into the parts that the submission of a task and a message have in common.
func (s *Flags) Fill(sender *api.Sender, work *api.Work) error {
	if err := s.Caller.check(); err != nil {
		return err
	}
	if s.priority < -interlock.MaxPriority || s.priority > interlock.MaxPriority {
		return cli.Usagef(
			"--priority %d: want a number from %d to %d", s.priority, -interlock.MaxPriority, interlock.MaxPriority,
		)
	}
	if s.maxAttempts < 0 || s.maxAttempts > interlock.MaxAttempts {
		return cli.Usagef("--max-attempts %d: want a number from 1 to %d", s.maxAttempts, interlock.MaxAttempts)
	}
	if err := cli.CheckDurations(
		cli.Duration("--in", s.delay, 0, interlock.MaxDelay), cli.Duration("--deadline", s.deadline, 0, interlock.MaxDelay),
	); err != nil {
		return err
	}
	if s.question == "" && (s.limit != 0 || s.onLimit.Value != "" || len(s.reads) > 0) {
		return cli.Usagef("--question-for, --question-on-limit and --read are about a question: add --question")
	}
	*sender = s.Caller.sender()
	work.Purpose, work.Priority, work.MaxAttempts = s.purpose, s.priority, s.maxAttempts
	work.Delay, work.Deadline = s.delay.Milliseconds(), s.deadline.Milliseconds()
	if s.question != "" {
		question, err := s.questionFlags.question(s.question)
		if err != nil {
			return err
		}
		work.Ask = question
	}
	if s.ID == "" {
		s.ID = cli.FreshID()
	}
	return nil
}
