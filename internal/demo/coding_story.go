package demo

import (
	"encoding/json"
	"fmt"
	"strings"
)

// conclude prints what came of both runs, and checks what the scene claims.
func (r *agentsResult) conclude(cfg Config, runs []*codingRun) error {
	if r.Without.Lost == 0 {
		r.Problems = append(r.Problems, "without hooks, no edit was lost")
	}
	if r.With.Lost > 0 || r.With.Broken > 0 {
		r.Problems = append(
			r.Problems, fmt.Sprintf("with hooks, %d edits were lost and %d builds failed", r.With.Lost, r.With.Broken),
		)
	}
	if cfg.JSON {
		encoder := json.NewEncoder(cfg.Out)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(r); err != nil {
			return err
		}
	} else {
		r.tell(cfg, runs)
	}
	if len(r.Problems) > 0 {
		return fmt.Errorf("%w: %s", ErrClaim, strings.Join(r.Problems, "; "))
	}
	return nil
}

func (r *agentsResult) tell(cfg Config, runs []*codingRun) {
	for i, title := range []string{"1. Without hooks", "2. With hooks"} {
		fmt.Fprintf(cfg.Out, "\n%s\n", title)
		for _, m := range runs[i].told {
			fmt.Fprintf(cfg.Out, "  %4.1f s  %s\n", m.at.Seconds(), m.text)
		}
		if reason := runs[i].denied; reason != "" {
			fmt.Fprintf(cfg.Out, "          what the first agent that had to wait received:\n%s\n", indent(reason, "          > "))
		}
	}
	row := func(what string, cell func(codingResult) string) {
		fmt.Fprintf(cfg.Out, "  %-34s %18s %18s\n", what, cell(r.Without), cell(r.With))
	}
	fmt.Fprintf(cfg.Out, "\n  %-34s %18s %18s\n", "", "without hooks", "with hooks")
	row("lost edits", func(c codingResult) string { return fmt.Sprintf("%d of %d", c.Lost, c.Edits) })
	row("builds that failed", func(c codingResult) string { return fmt.Sprintf("%d of %d", c.Broken, c.Builds) })
	row("the repository builds in the end", func(c codingResult) string {
		if c.LastBroken {
			return "no"
		}
		return "yes"
	})
	row("edits that were decided again", func(c codingResult) string { return fmt.Sprint(c.Refused) })
	row("waiting in hooks, all agents", func(c codingResult) string { return seconds(c.WaitingMS) })
	row("all done after", func(c codingResult) string { return seconds(c.TookMS) })
	fmt.Fprint(cfg.Out, `
The agents did not change: they know no leases. To have the hooks in your repository, run
"interlock init" there; docs/agents.md shows it.
`)
}
