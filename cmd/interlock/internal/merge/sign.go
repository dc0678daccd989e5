package merge

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/git"
	"github.com/interlockdev/interlock/merge"
)

// signer reads --sign: FORMAT:KEY, or git to do as the user's own git is configured. Empty means nil.
func signer(ctx context.Context, text string) (*merge.Signer, error) {
	format, key, _ := strings.Cut(text, ":")
	s := &merge.Signer{Format: format, Key: key}
	switch {
	case text == "":
		return nil, nil
	case text == "git":
		var err error
		if s, err = configured(ctx); err != nil {
			return nil, err
		}
	}
	if err := s.Check(); err != nil {
		return nil, cli.Usagef("--sign %s: %w", cli.Quote(text), err)
	}
	if s.Format == "ssh" {
		if _, err := os.Stat(s.Key); err != nil {
			return nil, cli.Usagef("--sign %s: want the file of a key: %w", cli.Quote(text), err)
		}
		var err error
		if s.Key, err = filepath.Abs(s.Key); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// configured is the signer of the configuration of the user and the system. That of no repository counts, since agents
// may write it.
func configured(ctx context.Context) (*merge.Signer, error) {
	var env []string
	for _, name := range []string{
		"HOME", "USERPROFILE", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM",
	} {
		if value, ok := os.LookupEnv(name); ok {
			name += "=" + value
		}
		env = append(env, name) // a name alone takes away what git gets elsewhere
	}
	own := git.Repository{Env: env}
	var failed error
	get := func(names ...string) string {
		for _, name := range names {
			for _, scope := range []string{"--global", "--system"} {
				result, err := own.Run(ctx, git.Call{
					Args: []string{"config", scope, "--includes", "--type=path", "--get", name}, Answers: []int{1},
				})
				failed = cmp.Or(failed, err)
				if text := strings.TrimSpace(string(result.Out)); err == nil && result.Exit == 0 && text != "" {
					return text
				}
			}
		}
		return ""
	}
	s := &merge.Signer{Format: cmp.Or(get("gpg.format"), "openpgp")}
	programs := []string{"gpg." + s.Format + ".program"}
	if s.Format == "openpgp" {
		programs = append(programs, "gpg.program")
	}
	s.Program = get(programs...)
	s.Key = get("user.signingKey")
	if failed == nil && s.Key == "" {
		failed = cli.Usagef("--sign git: your git has no user.signingKey: set it, or name the key as FORMAT:KEY")
	}
	return s, failed
}

// signers is the flags of commands that read signatures.
type signers struct{ keys []string }

func (s *signers) define(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(
		&s.keys, "signed-by", nil,
		"each landing must have a good signature of a key with this `fingerprint`; may be repeated for several keys",
	)
}

// summary is the signatures of landings, in words. It is empty if there are none.
func summary(list []merge.Signature) string {
	const unsigned = "without a signature"
	var keys []string
	count := map[string]int{}
	for _, s := range list {
		text := string(s.State)
		switch s.State {
		case merge.SignatureNone:
			text = unsigned
		case merge.SignatureGood:
			text = "signed by " + cmp.Or(s.Primary, s.Key)
		case merge.SignatureBad:
			text = "with a bad signature"
		case merge.SignatureUnchecked:
			text = "with a signature that cannot be checked here"
		}
		if count[text]++; count[text] == 1 {
			keys = append(keys, text)
		}
	}
	if count[unsigned] == len(list) {
		return ""
	}
	for i, text := range keys {
		keys[i] = cli.Count(count[text], "landing", "landings") + " " + text
	}
	return strings.Join(keys, ", ")
}
