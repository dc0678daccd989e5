package cli

import (
	"io"
	"net/http"
	"os"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"
)

// App is the common state of the commands of one process.
type App struct {
	Args []string // the command line
	In   *os.File
	Out  io.Writer
	Err  io.Writer

	// paint reports whether standard output is a terminal that shows colours, screen
	// whether it is a terminal at all.
	paint, screen bool
	// Started reports that the command line was understood and the command runs.
	Started bool

	Server  Target
	Output  string // -o
	Context string // --context

	// Wrap stands in front of the connections to the server; nil: nothing.
	Wrap func(http.RoundTripper) http.RoundTripper

	apiOnce sync.Once
	api     *API // see API
}

// NewApp returns the app of a command line, with the streams of this process.
func NewApp(args []string) *App {
	return &App{
		Args: args, In: os.Stdin, Out: os.Stdout, Err: os.Stderr, paint: colourful(os.Stdout), screen: IsTerminal(os.Stdout),
	}
}

// colourful reports whether colours may be written to f (see no-color.org).
func colourful(f *os.File) bool {
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))
}

// Annotations of commands.
const (
	Offline  = "offline"  // it talks to no server: the flags that name one are not shown, and refused
	TextOnly = "textOnly" // it has no -o json
)

// CheckGlobals refuses what a command would silently ignore.
func (a *App) CheckGlobals(cmd *cobra.Command) error {
	switch a.Output {
	case "text", "json":
	default:
		return Usagef("-o %s: want text or json", a.Output)
	}
	var ignored []string
	cmd.InheritedFlags().VisitAll(func(f *pflag.Flag) {
		if f.Changed && hidden(cmd, f) && !Given(f) {
			ignored = append(ignored, "--"+f.Name)
		}
	})
	if len(ignored) > 0 {
		return Usagef("%s does not take %s", cmd.CommandPath(), strings.Join(ignored, ", "))
	}
	if annotated(cmd, Offline) {
		return nil
	}
	if err := a.useContext(cmd); err != nil {
		return err
	}
	if url, grpc := cmd.Flag("url"), cmd.Flag("grpc-addr"); url.Changed && !Given(url) && Given(grpc) {
		a.Server.GRPC = "" // the variable is about another server than the flag
	}
	return a.Server.Complete()
}

// hidden reports whether a flag is a shared one that means nothing to a command.
func hidden(cmd *cobra.Command, f *pflag.Flag) bool {
	switch {
	case cmd.InheritedFlags().Lookup(f.Name) == nil:
		return false
	case f.Name == "output":
		return annotated(cmd, TextOnly)
	}
	return annotated(cmd, Offline)
}

func annotated(cmd *cobra.Command, key string) bool { return cmd.Annotations[key] != "" }

// OnScreen reports whether a person at a terminal sees the results.
func (a *App) OnScreen() bool { return a.screen }

// IsTerminal reports whether f is a terminal.
func IsTerminal(f *os.File) bool { return f != nil && term.IsTerminal(int(f.Fd())) }
