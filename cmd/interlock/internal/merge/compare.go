package merge

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/git"
	"github.com/interlockdev/interlock/merge"
)

// history is the flags of merge compare.
type history struct {
	repo, to, from string
	limit          int
	known          []string
}

// comparisons is the result of merge compare, as JSON.
type comparisons struct {
	Merges int `json:"merges"`
	// Outcomes counts the merges by their outcome.
	Outcomes map[merge.Outcome]int `json:"outcomes"`
	// Unexplained counts those with outcome "edited" that --known does not name.
	Unexplained int `json:"unexplained"`
	// Different has the merges that are not the same, the newest first.
	Different []difference `json:"different"`
}

type difference struct {
	merge.Comparison
	Known bool `json:"known,omitempty"`
}

func newCompare(a *cli.App) *cobra.Command {
	var h history
	cmd := &cobra.Command{
		Use:   "compare",
		Short: "Compare the merge commits of a history with the boundary",
		Long: `Merge the parents of each merge commit of a history again, as the merge boundary would, and
compare the trees. It shows what the boundary would have done with a history: before a team
adopts it, or when git is replaced. It asks no server, and writes nothing. The history may be
of any repository; commits with more than two parents are left out.

  same       the boundary makes the same tree
  conflict   the boundary would have returned it: a person resolved a conflict
  one_side   the merge has the tree of one parent, and drops the changes of the other
  unrelated  the parents have no commit in common
  edited     the merge has changes that neither parent made: look at it, and name it in --known

Exit codes: 0 no difference without an explanation; 65 merges that were edited, and --known
does not name them; 1 no git directory, or no such revision.`,
		Example: `  interlock merge compare --repo /srv/git/web.git --limit 500
  interlock merge compare --repo . --from v1.0 --to main --known 5f3c2a1 -o json`,
		Args:        cli.NoArgs,
		Annotations: map[string]string{cli.Offline: "true"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			result, err := h.compare(cmd.Context())
			if err != nil {
				return err
			}
			if a.JSON() {
				err = a.Print(result)
			} else {
				result.tell(a)
			}
			if err == nil && result.Unexplained > 0 {
				return cli.ExitWith(cli.ExitConflict, fmt.Errorf(
					"%s an edit of its own: look at it, and name it in --known if it is meant",
					cli.Count(result.Unexplained, "merge has", "merges have"),
				))
			}
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&h.repo, "repo", ".", "the git `directory` with the history")
	f.StringVar(&h.to, "to", "HEAD", "the `revision` with the history")
	f.StringVar(&h.from, "from", "", "leave out the history of this `revision` (default: nothing)")
	f.IntVar(&h.limit, "limit", 0, "compare at most so `many` merges, the newest (default: all)")
	f.StringSliceVar(&h.known, "known", nil, "a `commit` with an edit that is meant; may be repeated")
	return cmd
}

func (h *history) compare(ctx context.Context) (*comparisons, error) {
	if h.limit < 0 {
		return nil, cli.Usagef("--limit %d: want a number above 0, or none", h.limit)
	}
	repo, err := repository(ctx, h.repo)
	if err != nil {
		return nil, err
	}
	list := []string{"rev-list", "--min-parents=2", "--max-parents=2"}
	if h.limit > 0 {
		list = append(list, "--max-count="+strconv.Itoa(h.limit))
	}
	to, err := resolve(ctx, repo, "--to", h.to)
	if err != nil {
		return nil, err
	}
	list = append(list, to)
	if h.from != "" {
		from, err := resolve(ctx, repo, "--from", h.from)
		if err != nil {
			return nil, err
		}
		list = append(list, "^"+from)
	}
	var known []string
	for _, revision := range h.known {
		id, err := resolve(ctx, repo, "--known", revision)
		if err != nil {
			return nil, err
		}
		known = append(known, id)
	}
	commits, err := repo.Output(ctx, list...)
	if err != nil {
		return nil, err
	}
	profile, err := merge.NewProfile(ctx, "")
	if err != nil {
		return nil, err
	}
	boundary, err := merge.Open(ctx, merge.Config{Repository: repo.Dir, Profile: profile, Discard: true})
	if err != nil {
		return nil, err
	}
	defer boundary.Close()
	result := &comparisons{Outcomes: map[merge.Outcome]int{}, Different: []difference{}}
	for id := range strings.FieldsSeq(commits) {
		c, err := boundary.Compare(ctx, id)
		if err != nil {
			return nil, err
		}
		result.add(c, slices.Contains(known, id))
	}
	return result, nil
}

// resolve reads a revision as the id of a commit.
func resolve(ctx context.Context, repo git.Repository, flag, revision string) (string, error) {
	id, err := repo.Output(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", revision+"^{commit}")
	if err != nil {
		return "", fmt.Errorf("%s: %s is no commit of the repository", flag, cli.Quote(revision))
	}
	return id, git.CheckObject(id)
}

func (r *comparisons) add(c merge.Comparison, known bool) {
	r.Merges++
	r.Outcomes[c.Outcome]++
	if c.Outcome == merge.OutcomeSame {
		return
	}
	r.Different = append(r.Different, difference{c, known})
	if c.Outcome == merge.OutcomeEdited && !known {
		r.Unexplained++
	}
}

// shownPaths is how many paths of a merge are printed.
const shownPaths = 5

func (r *comparisons) tell(a *cli.App) {
	for i := range r.Different {
		d := &r.Different[i]
		line := fmt.Sprintf("%.12s %s", d.Commit, d.Outcome)
		if d.Known {
			line += " (known)"
		}
		for j, path := range d.Paths {
			if j == shownPaths {
				line += fmt.Sprintf(" and %d more", len(d.Paths)-j)
				break
			}
			line += " " + cli.Quote(path)
		}
		a.Say("%s\n", line)
	}
	line := cli.Count(r.Merges, "merge", "merges")
	for _, outcome := range []merge.Outcome{
		merge.OutcomeSame, merge.OutcomeConflict, merge.OutcomeOneSide, merge.OutcomeUnrelated, merge.OutcomeEdited,
	} {
		if n := r.Outcomes[outcome]; n > 0 || outcome == merge.OutcomeSame {
			line += fmt.Sprintf(", %d %s", n, outcome)
		}
	}
	a.Say("%s\n", line)
}
