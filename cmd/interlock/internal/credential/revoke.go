package credential

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/server"
)

// shownDigits is how much of a hash a table shows: enough to tell two secrets of one name apart.
const shownDigits = 12

// credentialRow is a credential as JSON.
type credentialRow struct {
	Line      int                 `json:"line"`
	Name      string              `json:"name"`
	Namespace interlock.Namespace `json:"namespace"`
	Rights    []string            `json:"rights"`
	Hash      string              `json:"hash"`
}

func newList(a *cli.App) *cobra.Command {
	var file, space string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the credentials in a server's file",
		Long: `List the credentials in a server's file: their names, namespaces and rights, and the beginnings
of the hashes.`,
		Example:     "  interlock credential list --file credentials.txt",
		Args:        cli.NoArgs,
		Annotations: map[string]string{cli.Offline: "true"},
		RunE: func(*cobra.Command, []string) error {
			_, all, err := readFile(file)
			if err != nil {
				return err
			}
			rows := []credentialRow{}
			for i := range all {
				if l := &all[i]; space == "" || string(l.Namespace) == space {
					rows = append(rows, credentialRow{l.Number, l.Principal.Name, l.Namespace, l.Rights(), l.Hash()})
				}
			}
			if a.JSON() {
				return a.Print(struct {
					Credentials []credentialRow `json:"credentials"`
				}{rows})
			}
			if len(rows) == 0 {
				a.Complain("no credentials")
				return nil
			}
			t := a.Table("NAME", "NAMESPACE", "RIGHTS", "HASH")
			for _, row := range rows {
				t.Row(row.Name, string(row.Namespace), strings.Join(row.Rights, " "), row.Hash[:shownDigits])
			}
			return t.Write(a.Out)
		},
	}
	fileFlag(cmd, &file)
	cmd.Flags().StringVar(&space, "for", "", "only those for this `namespace`")
	return cmd
}

func newDelete(a *cli.App) *cobra.Command {
	var file, space, hash string
	cmd := &cobra.Command{
		Use:     "delete NAME",
		Aliases: []string{"revoke"},
		Short:   "Revoke a credential",
		Long: `Remove a credential from a server's file: all lines with its name, or with --hash one secret of
it, such as the replaced one. A running server reads the file again within 10 s, or at once on
SIGHUP: it then refuses the credential and ends its session streams and waits. Its leases end
by their ttl; revoke them with "interlock lease revoke".

The last line is not removed: a server refuses a file without credentials, and would keep
the old ones.`,
		Example: `  interlock credential delete billing-swarm --file credentials.txt
  interlock credential delete ops --for acme --hash 60303ae22b99 --file credentials.txt`,
		Args:        cli.OneArg("the credential"),
		Annotations: map[string]string{cli.Offline: "true"},
		RunE: func(_ *cobra.Command, args []string) error {
			content, all, err := readFile(file)
			if err != nil {
				return err
			}
			gone, err := chosen(all, args[0], space, strings.ToLower(hash))
			if err != nil {
				return err
			}
			if len(gone) == len(all) {
				return cli.Usagef(
					"no credential would be left in %s, and a server refuses such a file: create another one first",
					cli.Clean(file),
				)
			}
			if err := removeLines(file, content, gone); err != nil {
				return err
			}
			lines := slices.Sorted(maps.Keys(gone))
			if a.JSON() {
				return a.Print(struct {
					Name    string `json:"name"`
					Removed []int  `json:"removed"`
					File    string `json:"file"`
				}{args[0], lines, file})
			}
			a.Say("deleted: credential %s, line %s\n", cli.Clean(args[0]), strings.Trim(fmt.Sprint(lines), "[]"))
			a.Complain(
				"a running server accepts the credential until it reads %s, within 10 s, or at once on SIGHUP", cli.Clean(file),
			)
			return nil
		},
	}
	fileFlag(cmd, &file)
	cmd.Flags().StringVar(&space, "for", "", "the `namespace` of the credential, if its name has several")
	cmd.Flags().StringVar(&hash, "hash", "", "only the secret with a hash that begins with these `digits`")
	return cmd
}

func fileFlag(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "file", "", "the server's credentials `file`")
}

func readFile(file string) (content []byte, all []server.CredentialLine, err error) {
	if file == "" {
		return nil, nil, cli.Usagef("set --file to the credentials file of the server")
	}
	if content, err = os.ReadFile(file); err != nil {
		return nil, nil, err
	}
	if all, err = server.ListCredentials(content); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", cli.Clean(file), err)
	}
	return content, all, nil
}

// chosen returns the numbers of the lines to remove.
func chosen(all []server.CredentialLine, name, space, hash string) (gone map[int]bool, err error) {
	gone = map[int]bool{}
	var spaces []string
	for i := range all {
		l := &all[i]
		if l.Principal.Name != name || space != "" && string(l.Namespace) != space || !strings.HasPrefix(l.Hash(), hash) {
			continue
		}
		gone[l.Number] = true
		if s := string(l.Namespace); len(spaces) == 0 || spaces[len(spaces)-1] != s {
			spaces = append(spaces, s)
		}
	}
	switch {
	case len(gone) == 0:
		return nil, cli.Usagef(
			"there is no such credential %s: `interlock credential list` shows them", cli.Quote(cli.Clean(name)),
		)
	case len(spaces) > 1:
		return nil, cli.Usagef(
			"%s is a credential of several namespaces: name one with --for: %s", cli.Clean(name),
			strings.Join(spaces, ", "),
		)
	case hash != "" && len(gone) > 1:
		return nil, cli.Usagef("--hash %s: %d secrets begin so: use more digits", cli.Clean(hash), len(gone))
	}
	return gone, nil
}

// removeLines writes a file without some of its lines, with the owner and the mode that it has.
func removeLines(file string, content []byte, gone map[int]bool) error {
	path, err := filepath.EvalSymlinks(file)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	var rest []byte
	n := 0
	for line := range bytes.Lines(content) {
		if n++; !gone[n] {
			rest = append(rest, line...)
		}
	}
	return cli.ReplaceFile(path, func(next *os.File) error {
		if err := errors.Join(next.Chmod(info.Mode().Perm()), keepOwner(next, info)); err != nil {
			return err
		}
		_, err := next.Write(rest)
		return err
	})
}
