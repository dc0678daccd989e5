package try

import (
	"bufio"
	"context"
	"os/exec"
	"runtime"

	"golang.org/x/term"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/demo"
)

// show has a scene show the dashboard of its server, in a browser if a person looks at the terminal. After the
// scene the server stays until Enter is pressed or ctx ends; where there is no terminal it ends at once.
func show(ctx context.Context, a *cli.App, cfg *demo.Config) {
	person := a.OnScreen() && term.IsTerminal(int(a.In.Fd()))
	cfg.Ready = func(url, secret string) {
		a.Complain("the dashboard is at %s/ui/", url)
		if secret != "" {
			a.Complain("log in there with %s", secret)
		}
		if person {
			browse(url + "/ui/")
		}
	}
	if !person {
		return
	}
	cfg.Linger = func() {
		a.Complain("the dashboard stays: press Enter to end its server")
		entered := make(chan struct{})
		go func() {
			_, _ = bufio.NewReader(a.In).ReadString('\n')
			close(entered)
		}()
		select {
		case <-entered:
		case <-ctx.Done():
		}
	}
}

// browse opens a page in the person's browser. Where that fails the address was printed.
func browse(url string) {
	program, args := "xdg-open", []string{url}
	switch runtime.GOOS {
	case "darwin":
		program = "open"
	case "windows":
		program, args = "rundll32", []string{"url.dll,FileProtocolHandler", url}
	}
	if cmd := exec.Command(program, args...); cmd.Start() == nil {
		go func() { _ = cmd.Wait() }()
	}
}
