package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/interlockdev/interlock"
	bank "github.com/interlockdev/interlock/writer/account"
)

// accountResult is the account scene as one JSON document.
type accountResult struct {
	Agents   int   `json:"agents"`
	Fees     int   `json:"fees"`
	Credits  int   `json:"credits"`
	Expected cents `json:"expected_balance"`
	Balance  cents `json:"balance"`

	Entries      int    `json:"log_entries"`
	Replayed     bool   `json:"log_replayed_equal"`
	Difference   string `json:"difference,omitempty"`
	Redeliveries int    `json:"redeliveries"`
	TookMS       int64  `json:"took_ms"`

	GoneAround []accountRefusal `json:"gone_around"`

	Holds    bool     `json:"holds"`
	Problems []string `json:"problems,omitempty"`
}

// accountRefusal is one attempt to go around the writer.
type accountRefusal struct {
	What    string `json:"what"`
	Code    string `json:"code,omitempty"` // "" for no objection
	Message string `json:"message,omitempty"`
	Next    string `json:"next,omitempty"`
}

// audit counts what is in the account and in its log, and decides the log again.
func (s *ledgerScene) audit(ctx context.Context) error {
	r := &s.result
	r.Agents = s.agents
	state, err := bank.NewClient(s.operator).State(ctx, bankAccount)
	if err != nil {
		return err
	}
	r.Balance = cents(state.Balance)
	r.Expected = cents(opening) - cents(lateFee)*cents((s.agents+1)/2) + cents(goodwill)*cents(s.agents/2)
	var log []interlock.LogEntry
	for entry, err := range s.operator.Log(ctx, bankAccount, 0) {
		if err != nil {
			return err
		}
		log = append(log, entry)
		r.Redeliveries += max(entry.Attempt-1, 0)
		var reply bank.Reply
		if json.Unmarshal(entry.Reply, &reply) != nil || reply.Outcome != bank.OutcomeDone || reply.By == treasury {
			continue
		}
		switch bank.Kind(entry.Kind) {
		case bank.Debit:
			r.Fees++
		case bank.Credit:
			r.Credits++
		}
	}
	r.Entries = len(log)
	end, err := bank.Replay(log)
	r.Replayed = err == nil && reflect.DeepEqual(end, state)
	switch {
	case err != nil:
		r.Difference = err.Error()
	case !r.Replayed:
		r.Difference = "the log ends with another state than the document's"
	}
	return nil
}

// closing prints the table, or the result as JSON, and checks what the scene claims.
func (s *ledgerScene) closing() error {
	r := &s.result
	claim := func(holds bool, format string, args ...any) {
		if !holds {
			r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
		}
	}
	claim(r.Balance == r.Expected, "the balance is %s, and must be %s", r.Balance, r.Expected)
	claim(r.Fees == (r.Agents+1)/2 && r.Credits == r.Agents/2, "%d fees and %d credits were done", r.Fees, r.Credits)
	claim(r.Replayed, "the log cannot be replayed: %s", r.Difference)
	claim(r.Redeliveries > 0, "no message was handed out again")
	for _, a := range r.GoneAround {
		claim(a.Code != "", "%s %s, and was not refused", goesAround, a.What)
	}
	r.Holds = len(r.Problems) == 0
	if s.cfg.JSON {
		encoder := json.NewEncoder(s.cfg.Out)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(r); err != nil {
			return err
		}
	} else {
		s.table()
	}
	if r.Holds {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrClaim, r.Problems[0])
}

func (s *ledgerScene) table() {
	r := &s.result
	row := func(what, format string, args ...any) {
		fmt.Fprintf(s.story.out, "  %-26s %s\n", what, fmt.Sprintf(format, args...))
	}
	exact := "exact"
	if r.Balance != r.Expected {
		exact = "WRONG"
	}
	equal := "replayed, every state and reply equal"
	if !r.Replayed {
		equal = "NOT EQUAL when replayed: " + r.Difference
	}
	refusals := 0
	for _, a := range r.GoneAround {
		if a.Code != "" {
			refusals++
		}
	}
	fmt.Fprintln(s.story.out)
	row(
		"commands done", "%d: %d fees of %s, %d credits of %s, and the opening of %s", r.Fees+r.Credits+1, r.Fees,
		cents(lateFee), r.Credits, cents(goodwill), cents(opening),
	)
	row("balance must be", "%s", r.Expected)
	row("balance is", "%s %s", r.Balance, exact)
	row("log", "%d entries, %s", r.Entries, equal)
	row("handed out again", "%d", r.Redeliveries)
	row("attempts to go around", "%d, refused %d", len(r.GoneAround), refusals)
	row("took", "%s", seconds(r.TookMS))
	fmt.Fprintln(s.story.out)
	if r.Holds {
		fmt.Fprintln(s.story.out, "Each command has counted once, with the writer and the server killed in the middle.")
		return
	}
	fmt.Fprintln(s.story.out, "The claim does not hold:")
	for _, p := range r.Problems {
		fmt.Fprintf(s.story.out, "  %s\n", p)
	}
}
