package journal

import (
	"bufio"
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/api"
	"github.com/interlockdev/interlock/journal/chain"
	"github.com/interlockdev/interlock/journal/filejournal"
)

func newJournalHead(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "head",
		Short: "Print the head of the journal's hash chain",
		Long: `Print the head of the journal's hash chain: the index of the newest entry, a colon and a
hash of everything up to it. Keep it out of reach of anyone who could change the journal: in
a signed Git tag, a ticket, another machine's log. "interlock admin journal verify --head"
proves later that nothing up to it was changed. An operator's credential is needed.`,
		Example: `  interlock admin journal head
  git tag -s journal-$(date +%F) -m "$(interlock admin journal head)"`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var got api.JournalHead
			return a.Get(cmd.Context(), "/v1/journal/head", nil, &got, func() error {
				a.Say("%s\n", cli.Clean(got.Head))
				return nil
			})
		},
	}
}

// headsOf reads published heads.
func headsOf(texts []string) ([]chain.Head, error) {
	heads := make([]chain.Head, 0, len(texts))
	for _, text := range texts {
		h, err := chain.Parse(text)
		if err != nil {
			return nil, cli.Usagef("--head %s: %w", cli.Clean(text), err)
		}
		heads = append(heads, h)
	}
	return heads, nil
}

// verifierOf prepares to check a journal's hash chain against published heads.
func verifierOf(ctx context.Context, dir string, heads []chain.Head) (*chain.Verifier, error) {
	var record chain.Record
	err := filejournal.ReadSnapshot(ctx, dir, func(at interlock.Index, state io.Reader) (err error) {
		record, err = chain.Read(bufio.NewReader(state), at)
		return err
	})
	return chain.NewVerifier(record, heads), err
}

// chainFailed adds the exit code to an error of the chain.
func chainFailed(err error) error {
	if _, tampered := errors.AsType[*chain.TamperError](err); tampered {
		return cli.ExitWith(cli.ExitDamaged, err)
	}
	return err
}

// sayProof prints what the hash chain has proved.
func sayProof(a *cli.App, p chain.Proof) {
	if p.Head.Index == 0 {
		return
	}
	a.Say("head       %s\n", p.Head)
	if p.From > 0 {
		a.Say(
			"           covers the entries after %s: earlier ones were truncated, or are from before there was a chain\n",
			p.From,
		)
	}
	for _, h := range p.Confirmed {
		a.Say("confirmed  %s\n", h)
	}
}
