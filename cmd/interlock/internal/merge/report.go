package merge

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/merge"
	"github.com/interlockdev/interlock/merge/merger"
)

// audit is the report for auditors. It depends on the branch and the server's documents alone, so two runs print the
// same bytes.
type audit struct {
	Ref      string          `json:"ref"`
	Head     string          `json:"head"`
	Landings []auditRow      `json:"landings"`
	Findings []merge.Finding `json:"findings"`
	Summary  auditSummary    `json:"summary"`

	signatures []merge.Signature
}

type auditSummary struct {
	Landings     int `json:"landings"`
	Verified     int `json:"verified"`
	Unverifiable int `json:"unverifiable"`
	Damaged      int `json:"damaged"`
	// Foreign counts the commits between landings that are none.
	Foreign int `json:"foreign"`
	// Rewound is 1 if the branch lacks its last landing.
	Rewound int `json:"rewound"`
	// Unchecked counts the landings of the server's last 1,000 that no check is known to have passed.
	Unchecked int `json:"unchecked"`
	// Apart counts the landings with a tree that was not checked itself.
	Apart int `json:"apart"`
	// Flaky counts the verdicts with a failure beside a pass.
	Flaky int `json:"flaky"`
	// Forgotten counts the landings that the server knows nothing of any more.
	Forgotten int `json:"forgotten"`
}

// auditRow is one landing. What only the server knows is left out where it has forgotten it, or was not asked.
type auditRow struct {
	Sequence   uint64 `json:"seq"`
	Commit     string `json:"commit"`
	Tree       string `json:"tree"`
	Parent     string `json:"parent"`
	Submission string `json:"submission"`
	Head       string `json:"head"`
	Style      string `json:"style"`
	Author     string `json:"author"`
	Profile    string `json:"profile"`
	Submitted  string `json:"submitted"`
	Admitted   string `json:"admitted"`

	Known     bool           `json:"known_to_server"`
	Agent     string         `json:"agent,omitempty"`
	Principal string         `json:"principal,omitempty"`
	Purpose   string         `json:"purpose,omitempty"`
	Staged    string         `json:"staged,omitempty"`
	Apart     bool           `json:"apart,omitempty"`
	Checks    []auditVerdict `json:"checks,omitempty"`

	// Verified is yes, no, or unknown: the landing was computed again, with the invariants below.
	Verified  string `json:"verified"`
	SameTree  string `json:"same_tree"`
	Untouched string `json:"untouched_paths_untouched"`
	// Signature is none, good, bad or unchecked, and SignedBy the fingerprint of the key of a good one.
	Signature merge.SignatureState `json:"signature"`
	SignedBy  string               `json:"signed_by,omitempty"`
}

// auditVerdict is a check that has let a landing land, and what the server still has of its verdict.
type auditVerdict struct {
	Name string `json:"name"`
	// Tree is another one than the landing's if it landed within a batch, or apart.
	Tree      string `json:"tree"`
	Task      string `json:"task"`
	Principal string `json:"principal,omitempty"`
	Runs      int    `json:"runs"`
	Failures  int    `json:"failures"`
}

func newReport(a *cli.App) *cobra.Command {
	var b branch
	var keys signers
	cmd := &cobra.Command{
		Use:   "report [REPO/TARGET]",
		Short: "Report all landings of a branch, for an audit",
		Long: `Report each landing of a branch: its commit, submission, author, times and checks, and whether it
is what the boundary makes of its inputs. Each landing is computed again, as by "merge verify".
VERIFIED is yes, no or unknown; -o json has all fields, and both invariants for each landing.

The facts come from the repository alone. With REPO/TARGET the server is asked, too, for agents,
credentials, purposes, checks and their runs; it keeps those of the last 1,000 landings. Two runs
print the same, as long as nothing lands and the server forgets nothing in between.

Exit codes: 0 all is as it should be, or cannot be judged here; 1 a landing is not what the
boundary makes, or the server knows of no check that it has passed; 69 no server answered.`,
		Example: `  interlock merge report --repo /srv/git/web.git
  interlock merge report web/main --repo /srv/git/web.git --from 1200 -o json > audit.json`,
		Args: cli.AtMostOneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			var n merger.Name
			if len(args) == 1 {
				var err error
				if n, err = nameArg(args[0]); err != nil {
					return err
				}
				if !cmd.Flags().Changed("ref") {
					b.ref = n.Ref()
				}
			}
			r, err := b.audit(cmd.Context(), a, n, keys.keys)
			if err != nil {
				return err
			}
			if a.JSON() {
				err = a.Print(r)
			} else {
				err = r.print(a)
			}
			if err == nil {
				err = r.verdict()
			}
			return err
		},
	}
	b.define(cmd)
	keys.define(cmd)
	return cmd
}

func (b *branch) audit(ctx context.Context, a *cli.App, n merger.Name, keys []string) (*audit, error) {
	// It is read before the branch, which is never behind it then.
	var known merger.Target
	if n.Repo != "" {
		if _, err := (&requests{a.API()}).read(ctx, n.Key(), &known); err != nil {
			return nil, err
		}
	}
	boundary, _, at, err := b.open(ctx)
	if err != nil {
		return nil, err
	}
	defer boundary.Close()
	head := at.Head
	history, err := boundary.History(ctx, head, b.from)
	if err != nil {
		return nil, err
	}
	verified, err := boundary.Verify(ctx, head, b.from, nil)
	if err != nil {
		return nil, err
	}
	for _, last := range []merge.Fence{at.Fence, {Sequence: known.Sequence, Commit: known.Head}} {
		if !rewound(verified.Findings) {
			if err := boundary.VerifyFence(ctx, &verified, head, last); err != nil {
				return nil, err
			}
		}
	}
	if err := boundary.VerifySignatures(ctx, &verified, head, b.from, keys); err != nil {
		return nil, err
	}
	r := &audit{
		Ref: b.ref, Head: head, Landings: []auditRow{}, Findings: append([]merge.Finding{}, verified.Findings...),
		signatures: verified.Signatures,
	}
	for i := range history {
		l := judge(&history[i], verified.Findings)
		l.Signature, l.SignedBy = r.signatures[i].State, r.signatures[i].Key
		if verified.Truncated && l.Verified == "yes" {
			l.Verified = "unknown" // a finding about it may have been left out
		}
		if n.Repo != "" {
			if err := l.ask(ctx, &requests{a.API()}, n); err != nil {
				return nil, err
			}
			switch {
			case len(l.Checks) > 0:
			case l.Known || l.Sequence+merger.KeepLandings > history[len(history)-1].Sequence:
				r.Summary.Unchecked++
			default:
				r.Summary.Forgotten++
			}
		}
		r.Landings = append(r.Landings, *l)
		r.count(l)
	}
	for _, f := range r.Findings {
		switch f.Kind {
		case merge.FoundForeign:
			r.Summary.Foreign++
		case merge.FoundRewound:
			r.Summary.Rewound++
		}
	}
	return r, nil
}

// rewound reports whether a branch was found to lack its last landing.
func rewound(findings []merge.Finding) bool {
	return slices.ContainsFunc(findings, func(f merge.Finding) bool { return f.Kind == merge.FoundRewound })
}

// verdict is an error if the branch is not what the boundary makes, or no check is known to have passed a landing.
func (r *audit) verdict() error {
	if r.Summary.Damaged+r.Summary.Foreign+r.Summary.Rewound > 0 {
		return errNotOurs
	}
	if n := r.Summary.Unchecked; n > 0 {
		return fmt.Errorf("no check is known to have passed %s", cli.Count(n, "landing", "landings"))
	}
	return nil
}

func (r *audit) count(l *auditRow) {
	r.Summary.Landings++
	switch l.Verified {
	case "yes":
		r.Summary.Verified++
	case "no":
		r.Summary.Damaged++
	default:
		r.Summary.Unverifiable++
	}
	if l.Apart {
		r.Summary.Apart++
	}
	for _, v := range l.Checks {
		if v.Failures > 0 {
			r.Summary.Flaky++
		}
	}
}

// judge is a landing with what Verify found about it.
func judge(h *merge.HistoryEntry, findings []merge.Finding) *auditRow {
	style := h.Style
	l := &auditRow{
		Sequence: h.Sequence, Commit: h.Commit, Tree: h.Tree, Parent: h.Parent, Submission: h.ID, Head: h.Head,
		Style: string(style), Author: h.Author, Profile: h.Profile, Submitted: date(h.Submitted * 1000),
		Admitted: date(h.Staged * 1000), Verified: "yes", SameTree: "yes", Untouched: "yes",
	}
	for _, f := range findings {
		if f.Commit != h.Commit {
			continue
		}
		switch f.Kind {
		case merge.FoundTree, merge.FoundRefused:
			l.SameTree = "no"
		case merge.FoundPath:
			l.Untouched = "no"
		case merge.FoundMissing:
			l.SameTree, l.Untouched = "unknown", "unknown"
		case merge.FoundProfile:
			l.SameTree = "unknown"
		}
		switch {
		case f.Kind.Damage():
			l.Verified = "no"
		case l.Verified == "yes":
			l.Verified = "unknown"
		}
	}
	return l
}

// ask adds what the server knows of a landing.
func (l *auditRow) ask(ctx context.Context, r *requests, n merger.Name) error {
	var d merger.Landing
	if found, err := r.read(ctx, n.LandingKey(l.Sequence), &d); err != nil || !found || d.Commit != l.Commit {
		return err // that of another history is none of this landing
	}
	l.Known, l.Agent, l.Principal, l.Purpose, l.Apart = true, d.Agent, d.Principal, d.Purpose, d.Apart
	if d.At != 0 {
		l.Staged = date(d.At)
	}
	for _, p := range d.Passed {
		var v merger.Verdict
		if _, err := r.read(ctx, n.VerdictKey(p.Tree, p.Check), &v); err != nil {
			return err
		}
		l.Checks = append(l.Checks, auditVerdict{p.Check, p.Tree, p.Task, p.Principal, v.Runs, v.Failures})
	}
	slices.SortFunc(l.Checks, func(a, b auditVerdict) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// read reads a document of JSON, and reports whether there is one.
func (r *requests) read(ctx context.Context, key interlock.Key, v any) (bool, error) {
	d, err := r.Document(ctx, key)
	if err != nil || d.Absent {
		return false, err
	}
	return true, json.Unmarshal(d.Body, v)
}

// date is a time in UTC.
func date(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339) }

func (r *audit) print(a *cli.App) error {
	t := a.Table("LANDING", "COMMIT", "SUBMISSION", "BY", "ADMITTED", "CHECKS", "VERIFIED")
	for i := range r.Landings {
		l := &r.Landings[i]
		by := l.Author
		if l.Known {
			by = strings.TrimSpace(l.Agent + " " + l.Principal)
		}
		t.Row(
			l.Sequence, l.Commit[:12], cli.Clean(l.Submission), cli.OrDash(cli.Clean(by)), l.Admitted, l.checks(), l.Verified,
		)
	}
	if err := t.Write(a.Out); err != nil {
		return err
	}
	for _, f := range r.Findings {
		a.Say("%s %.12s: %s\n", f.Kind, f.Commit, cli.Clean(f.Detail))
	}
	s := &r.Summary
	a.Say(
		"%s: %d verified, %d damaged, %d not to be judged here; %d foreign, %d checked apart, %d flaky\n",
		cli.Count(s.Landings, "landing", "landings"), s.Verified, s.Damaged, s.Unverifiable, s.Foreign, s.Apart, s.Flaky,
	)
	return nil
}

// checks is the checks of a landing in words.
func (l *auditRow) checks() string {
	var list []string
	for _, v := range l.Checks {
		text := v.Name
		switch {
		case l.Apart && v.Tree != l.Tree:
			text += " (apart)"
		case v.Tree != l.Tree:
			text += " (in its batch)"
		case v.Failures > 0:
			text += " (flaky)"
		}
		list = append(list, text)
	}
	return cli.OrDash(strings.Join(list, ", "))
}
