package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// staleResult is the result of the scene, as JSON.
type staleResult struct {
	Speed    int           `json:"speed"`
	Expected cents         `json:"expected_balance"`
	Ways     []staleStrand `json:"strategies"`
	Problems []string      `json:"problems,omitempty"`
}

// staleStrand is the result of one strategy. Times are the scene's, in milliseconds.
type staleStrand struct {
	Strategy   string `json:"strategy"`
	Balance    cents  `json:"balance"`
	Edits      int    `json:"edits_in_file"` // of two
	Merged     int    `json:"edits_merged"`
	ThinkingMS int64  `json:"thinking_ms"`
	RepeatedMS int64  `json:"repeated_thinking_ms"`
	WaitingMS  int64  `json:"waiting_ms"`
	TookMS     int64  `json:"took_ms"`
	Packet     string `json:"packet,omitempty"` // what the refused agent received
	told       []moment
}

// conclude counts what came of the scene, prints it, and checks what it claims.
func conclude(ctx context.Context, cfg Config, stages []*stage) error {
	r := staleResult{Speed: cfg.Speed, Expected: expected()}
	for _, g := range stages {
		balance, edits, err := g.found(ctx)
		if err != nil {
			return err
		}
		r.Ways = append(r.Ways, staleStrand{
			Strategy: g.strategy.name, Balance: balance, Edits: edits, Merged: g.merged, ThinkingMS: g.thinking.Milliseconds(),
			RepeatedMS: g.repeated.Milliseconds(), WaitingMS: g.waiting.Milliseconds(), TookMS: g.took.Milliseconds(),
			Packet: g.packet, told: g.told,
		})
		switch whole := balance == r.Expected && edits == 2; {
		case g.strategy.safe && !whole:
			r.Problems = append(
				r.Problems, fmt.Sprintf("%s: balance %s, and %d of 2 changes in the file", g.strategy.name, balance, edits),
			)
		case !g.strategy.safe && whole:
			r.Problems = append(r.Problems, "unguarded, nothing was lost")
		}
	}
	if cfg.JSON {
		encoder := json.NewEncoder(cfg.Out)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(r); err != nil {
			return err
		}
	} else {
		r.tell(cfg)
	}
	if len(r.Problems) > 0 {
		return fmt.Errorf("%w: %s", ErrClaim, strings.Join(r.Problems, "; "))
	}
	return nil
}

func (r *staleResult) tell(cfg Config) {
	for _, w := range r.Ways {
		fmt.Fprintf(cfg.Out, "\n%s\n", w.Strategy)
		for _, m := range w.told {
			fmt.Fprintf(cfg.Out, "  %4.1f s  %s\n", m.at.Seconds(), m.text)
		}
		if w.Packet != "" {
			fmt.Fprintf(cfg.Out, "          what it was told, ready for its prompt:\n%s\n", indent(w.Packet, "          > "))
		}
	}
	row := func(what string, cell func(*staleStrand) string) {
		fmt.Fprintf(cfg.Out, "  %-34s", what)
		for i := range r.Ways {
			fmt.Fprintf(cfg.Out, " %18s", cell(&r.Ways[i]))
		}
		fmt.Fprintln(cfg.Out)
	}
	fmt.Fprintln(cfg.Out)
	row("", func(w *staleStrand) string { return w.Strategy })
	row("balance (must be "+r.Expected.String()+")", func(w *staleStrand) string {
		if w.Balance == r.Expected {
			return w.Balance.String() + " exact"
		}
		return w.Balance.String() + " wrong"
	})
	row("changes in the file", func(w *staleStrand) string {
		if w.Merged > 0 {
			return fmt.Sprintf("%d of 2, merged", w.Edits)
		}
		return fmt.Sprintf("%d of 2", w.Edits)
	})
	row("thinking, both agents", func(w *staleStrand) string { return seconds(w.ThinkingMS) })
	row("of that repeated", func(w *staleStrand) string { return seconds(w.RepeatedMS) })
	row("waiting in line", func(w *staleStrand) string { return seconds(w.WaitingMS) })
	row("both done after", func(w *staleStrand) string { return seconds(w.TookMS) })
	fmt.Fprint(cfg.Out, `
Leases cost waiting, versions cost thinking twice when two meet; changes that commute cost
neither. Who meets often takes a lease; "interlock key contention" says which keys those are.
`)
}

// indent puts a mark before each line.
func indent(text, mark string) string {
	return mark + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n"+mark)
}
