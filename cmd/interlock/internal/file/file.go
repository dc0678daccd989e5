package file

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/guard/file"
	"github.com/interlockdev/interlock/internal/api"
)

// New returns the command file.
func New(a *cli.App) *cobra.Command {
	return cli.Group(
		"file", "Read and change files that several agents share",
		`Read and change the files of a directory that several agents share without branches, and
lose no change. A file's version is the hash of its content. A write names the version that
the change was made from: if others have changed the file since, both changes are merged as
git does it, and where they are in conflict nothing is written and the answer describes the
changes and their authors, in words for a prompt.

This needs no server. Paths are below --root, with / between their parts; symbolic
links are not followed. Earlier contents are kept in .interlock below the root.`,
		newFileRead(a), newFileVersion(a), newFileWrite(a), newFileDelete(a),
	)
}

// sharedFile is the common part of the commands about files.
type sharedFile struct {
	root        string
	base        string
	agent, note string
}

func (s *sharedFile) command(cmd *cobra.Command) *cobra.Command {
	cmd.Args = cli.OneArg("a path")
	cmd.Annotations = map[string]string{cli.Offline: "true"}
	cmd.Flags().StringVar(&s.root, "root", ".", "the `directory` that is shared")
	cli.Bind(cmd.Flags(), "root", "")
	return cmd
}

func (s *sharedFile) change(cmd *cobra.Command) *cobra.Command {
	f := s.command(cmd).Flags()
	f.StringVar(
		&s.base, "base", "", "the `version` that the change was made from, as printed by read; none for a new file",
	)
	cli.AgentVar(f, &s.agent, "your `name`, for others to read")
	f.StringVar(&s.note, "note", "", "a `text` about the change, for reports of conflicts")
	return cmd
}

// in does something in the directory.
func (s *sharedFile) in(do func(d *file.Dir) error) error {
	d, err := file.Open(s.root)
	if err != nil {
		return cli.Usagef("--root: %w", err)
	}
	return errors.Join(do(d), d.Close())
}

func newFileRead(a *cli.App) *cobra.Command {
	var s sharedFile
	var versionFile string
	cmd := s.command(&cobra.Command{
		Use:   "read PATH",
		Short: "Print a file and its version",
		Long: `Print a file as it is on standard output, and its version on standard error, with the author
if it was written through this command. --version-file writes the version, and nothing else,
to a file: keep it for the write.

Exit code 1 means that there is no such file.`,
		Example: `  interlock file read src/auth.ts --version-file /tmp/base > /tmp/auth.ts
  interlock file write src/auth.ts --base "$(cat /tmp/base)" < /tmp/auth.ts
  interlock file read src/auth.ts -o json | jq -r .version`,
		RunE: func(_ *cobra.Command, args []string) error {
			return s.in(func(d *file.Dir) error {
				f, err := d.Read(args[0])
				if err != nil {
					return err
				}
				if versionFile != "" {
					if err := os.WriteFile(versionFile, []byte(f.Version+"\n"), 0o666); err != nil {
						return err
					}
				}
				if a.JSON() {
					return a.Print(fileAnswer{
						Path: f.Path, Version: f.Version, Size: len(f.Body), DocumentBody: bodyOf(f.Body),
						Agent: cli.Clean(f.Agent), Principal: cli.Clean(f.Principal), Note: cli.CleanLines(f.Note),
						Age: f.Age.Milliseconds(),
					})
				}
				by := ""
				if f.Agent != "" {
					by = fmt.Sprintf(" by %s %s ago", cli.Clean(f.Agent), cli.Short(f.Age))
					if f.Note != "" {
						by += ": " + cli.Clean(f.Note)
					}
				}
				a.Complain("version %s%s", f.Version, by)
				return a.Content(f.Body)
			})
		},
	})
	cmd.Flags().StringVar(&versionFile, "version-file", "", "write the version to this `file`")
	return cmd
}

func newFileVersion(a *cli.App) *cobra.Command {
	var s sharedFile
	return s.command(&cobra.Command{
		Use:   "version PATH",
		Short: "Print the version of a file, and nothing else",
		Long: `Print the version of a file, or none if it is not there. If you read the content in another
way, get the version first: a change between the two is then noticed.`,
		Example: `  base=$(interlock file version notes.md)`,
		RunE: func(_ *cobra.Command, args []string) error {
			return s.in(func(d *file.Dir) error {
				version := file.None
				f, err := d.Read(args[0])
				switch {
				case err == nil:
					version = f.Version
				case !errors.Is(err, &interlock.Error{Code: interlock.CodeUnknownFile}):
					return err
				}
				if a.JSON() {
					return a.Print(fileAnswer{Path: args[0], Version: version})
				}
				a.Say("%s\n", version)
				return nil
			})
		},
	})
}

func newFileWrite(a *cli.App) *cobra.Command {
	var s sharedFile
	return s.change(&cobra.Command{
		Use:   "write PATH --base VERSION < CONTENT",
		Short: "Write a file if it has not changed, or merge",
		Long: `Write standard input as the whole content of a file, and print the new version. If the file
has changed since --base, both changes are merged; a message on standard error reports that,
and the file has to be read again before the next change.

Exit code 65 means that the two are in conflict: nothing was written, and standard error
names the changes, their authors, and the next step.`,
		Example: `  interlock file write src/auth.ts --base "$(cat /tmp/base)" --note "rate limit" < /tmp/auth.ts
  interlock file write notes.md --base none < /tmp/notes.md`,
		RunE: func(cmd *cobra.Command, args []string) error {
			body, err := io.ReadAll(io.LimitReader(a.In, file.MaxBytes+1))
			if err != nil {
				return fmt.Errorf("reading the content: %w", err)
			}
			return changeFile(cmd.Context(), a, &s, file.Change{Path: args[0], Body: body})
		},
	})
}

func newFileDelete(a *cli.App) *cobra.Command {
	var s sharedFile
	return s.change(&cobra.Command{
		Use:     "delete PATH --base VERSION",
		Short:   "Delete a file if it has not changed",
		Example: `  interlock file delete old.md --base "$(cat /tmp/base)" --note "moved to new.md"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return changeFile(cmd.Context(), a, &s, file.Change{Path: args[0], Delete: true})
		},
	})
}

func changeFile(ctx context.Context, a *cli.App, s *sharedFile, c file.Change) error {
	if s.base == "" {
		return cli.Usagef("name the version that the change was made from: --base VERSION, or --base none for a new file")
	}
	c.Base, c.Agent, c.Note = file.Version(s.base), s.agent, s.note
	if c.Agent == "" {
		c.Agent = cli.OwnName()
	}
	return s.in(func(d *file.Dir) error {
		result, err := d.Write(ctx, c)
		if stale, ok := errors.AsType[*file.StaleError](err); ok {
			if a.JSON() {
				err = a.Print(staleAnswer(stale))
			} else {
				_, err = io.WriteString(a.Err, stale.Packet.Message)
			}
			return errors.Join(cli.ExitWith(cli.ExitConflict, nil), err)
		}
		if err != nil {
			return err
		}
		if a.JSON() {
			answer := fileAnswer{Path: c.Path, Version: result.Version, Size: result.Size, Merged: &result.Merged}
			if result.Merged {
				answer.DocumentBody = bodyOf(result.Body)
			}
			return a.Print(answer)
		}
		a.Say("%s\n", result.Version)
		if result.Merged {
			a.Complain(
				"merged with what others wrote meanwhile: read %s again before you change more", cli.Quote(cli.Clean(c.Path)),
			)
		}
		return nil
	})
}

// fileAnswer is a file, or what was written.
type fileAnswer struct {
	Path    string       `json:"path"`
	Version file.Version `json:"version"`
	Merged  *bool        `json:"merged,omitempty"`
	Size    int          `json:"size"`
	api.DocumentBody
	Agent     string `json:"agent,omitempty"`
	Principal string `json:"principal,omitempty"`
	Note      string `json:"note,omitempty"`
	Age       int64  `json:"age_ms,omitempty"`
}

// bodyOf returns a content: text if it can be.
func bodyOf(body []byte) api.DocumentBody {
	if utf8.Valid(body) {
		return api.DocumentBody{Text: new(string(body))}
	}
	return api.DocumentBody{Base64: new(base64.StdEncoding.EncodeToString(body))}
}

// stateOf returns one version of a file in the form of the HTTP API, without its size.
func stateOf(version file.Version, d *interlock.Document) api.DocumentState {
	s := api.DocumentState{Version: string(version), DocumentInfo: api.DocumentInfo{
		Absent: d.Absent, Agent: cli.Clean(d.Agent), Principal: cli.Clean(d.Principal), Note: cli.CleanLines(d.Note),
	}}
	if age := d.Age.Milliseconds(); age > 0 {
		s.Age = &age
	}
	return s
}

// staleAnswer is a refusal in the form of the HTTP API.
func staleAnswer(e *file.StaleError) any {
	c := &e.Packet.Changes[0]
	stale := api.StaleDocument{
		Key: e.Path, Then: api.EarlierState{Version: string(e.Then), Absent: c.Then.Absent}, Now: stateOf(e.Now, &c.Now),
		Writes: c.Writes, Left: c.Left,
		Diff: api.Difference{Kind: c.Diff.Kind.String(), Text: c.Diff.Text, Cut: c.Diff.Cut},
	}
	if c.Known && !c.Then.Absent {
		stale.Then.Size = &c.Then.Size
	}
	if !c.Now.Absent {
		stale.Now.Size = &c.Now.Size
	}
	if c.Diff.Kind == interlock.SizesOnly {
		stale.Diff.ThenBytes, stale.Diff.NowBytes = &c.Then.Size, &c.Now.Size
	}
	for i := range c.Between {
		stale.Between = append(stale.Between, stateOf(e.Between[i], &c.Between[i]))
	}
	return struct {
		Code   interlock.Code `json:"code"`
		Path   string         `json:"path"`
		Packet api.Packet     `json:"packet"`
	}{interlock.CodeStale, e.Path, api.Packet{
		Changes: []api.StaleDocument{stale}, More: e.Packet.More, Message: e.Packet.Message,
	}}
}
