package merge

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/merge/forge"
)

// forgeFlags is the flags of a merger that has a forge merge its landings.
type forgeFlags struct {
	request, token string
	within         time.Duration
	forge          *forge.Forge // nil: landings are pushed
}

func (r *forgeFlags) define(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(
		&r.request, "request", "",
		"have the forge merge landings: `KIND=URL` of the repository in the API of a github, gitea or gitlab",
	)
	f.StringVar(&r.token, "request-token", "", "the `place` of the token for --request: file:PATH or env:NAME")
	cli.DurationVar(
		f, &r.within, "request-within", 10*time.Minute,
		"how long the forge may take to merge a request, before that is a failure of the merger",
	)
}

// check reads the flags. ref is the target's.
func (r *forgeFlags) check(push, ref string) error {
	if r.request == "" {
		if r.token != "" {
			return cli.Usagef("--request-token is for --request, which is missing")
		}
		return nil
	}
	kind, url, ok := strings.Cut(r.request, "=")
	switch {
	case !ok:
		return cli.Usagef(
			"--request: want KIND=URL, such as github=https://api.github.com/repos/acme/web; KIND is one of %s",
			strings.Join(forge.Kinds(), ", "),
		)
	case push == "":
		return cli.Usagef("--request needs --push, the URL of the repository to which the branches of landings are pushed")
	case !strings.HasPrefix(ref, "refs/heads/"):
		return cli.Usagef("--request: the target %s is no branch", cli.Quote(ref))
	case r.within < time.Second:
		return cli.Usagef("--request-within %v: want at least 1s", r.within)
	}
	credential, err := r.credential()
	if err != nil {
		return err
	}
	if r.forge, err = forge.New(forge.Config{Kind: kind, URL: url, Credential: credential}); err != nil {
		return cli.Usagef("--request: %w", err)
	}
	return nil
}

// credential returns how the token is read. A file is read each time, so that the token can be replaced. A variable is
// removed, so that no program that is started here gets it.
func (r *forgeFlags) credential() (func() (string, error), error) {
	kind, place, _ := strings.Cut(r.token, ":")
	switch {
	case kind == "env" && place != "":
		token, err := tokenOf(os.Getenv(place))
		if err != nil {
			return nil, cli.Usagef("--request-token %s: %w", cli.Quote(r.token), err)
		}
		return func() (string, error) { return token, nil }, os.Unsetenv(place)
	case kind == "file" && place != "":
		read := func() (string, error) {
			token, err := readToken(place)
			if err != nil {
				return "", fmt.Errorf("the token of --request cannot be read: %w", err)
			}
			return token, nil
		}
		if _, err := read(); err != nil {
			return nil, err
		}
		return read, nil
	}
	return nil, cli.Usagef("--request-token: want file:PATH or env:NAME; an argument would be in the list of processes")
}

// maxToken bounds a token.
const maxToken = 4 << 10

func readToken(path string) (string, error) {
	if info, err := os.Stat(path); err != nil {
		return "", err
	} else if !info.Mode().IsRegular() {
		return "", errors.New("it is no file") // to open another thing may wait for ever
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxToken+1))
	if err != nil {
		return "", err
	}
	return tokenOf(string(text))
}

// tokenOf checks a token. Its error does not quote it.
func tokenOf(text string) (string, error) {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return "", errors.New("it is empty")
	case len(text) > maxToken:
		return "", fmt.Errorf("it has more than %d bytes", maxToken)
	case strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c > '~' }):
		return "", errors.New("it is no token: it has spaces, or letters beyond ASCII")
	}
	return text, nil
}
