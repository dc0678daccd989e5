package cli

import (
	"bufio"
	"context"
	"fmt"
	"strings"
)

// Confirm asks the person at the terminal a question, and reports whether the answer is yes.
func (a *App) Confirm(ctx context.Context, question string) (bool, error) {
	fmt.Fprint(a.Err, CleanLines(question)+" [y/N] ")
	answers := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(a.In).ReadString('\n')
		answers <- line
	}()
	select {
	case answer := <-answers:
		answer = strings.ToLower(strings.TrimSpace(answer))
		return answer == "y" || answer == "yes", nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}
