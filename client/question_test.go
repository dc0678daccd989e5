package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
)

// A question that cannot be asked is a failed attempt, and is not asked again.
func TestQuestionCannotBeAsked(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.queue(interlock.TaskQueue{Name: "refunds", MaxAttempts: 1})
		c := s.client("agent")
		task := s.submit(c, client.TaskSpec{Queue: "refunds"})
		x := s.work(s.client("worker"), client.Worker{Queue: "refunds", Handle: func(context.Context, *client.Job) (client.Done, error) {
			return client.Done{}, client.NeedsApproval(client.Question{Text: strings.Repeat("?", interlock.MaxQuestionBytes+1)})
		}})
		_, err := c.Await(s.ctx, task.ID)
		dead, ok := errors.AsType[*client.TaskError](err)
		if !ok || dead.Task.State != interlock.TaskDead || dead.Task.Attempt != 1 ||
			!strings.Contains(dead.Task.Reason, "it waits for a decision") {
			t.Errorf("got %v", err)
		}
		x.stop()
	})
}

func TestQuestionOf(t *testing.T) {
	err := fmt.Errorf("refunds: %w", client.NeedsApproval(client.Question{Text: "refund 1200?"}))
	if q, ok := client.QuestionOf(err); !ok || q.Text != "refund 1200?" {
		t.Errorf("got %+v, %t", q, ok)
	}
	for _, err := range []error{nil, io.EOF, client.Dead(io.EOF)} {
		if _, ok := client.QuestionOf(err); ok {
			t.Errorf("%v asks", err)
		}
	}
}
