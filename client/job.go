package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
)

// Job is a task in a worker's hands. Its texts are other agents'.
type Job struct {
	task      interlock.Task
	lease     *Lease
	documents []interlock.Document
	asOf      interlock.Version

	left bool // its handler makes room for another's
}

// Task is the task, with the attempts before this one and, where a person was asked,
// with the answer.
func (j *Job) Task() interlock.Task { return j.task }

// Lease is the lease on the task's keys. It ends with the job: release it not.
func (j *Job) Lease() *Lease { return j.lease }

// Documents returns the guarded state of the task's keys at the assignment of the job, with
// absent documents: a commit that creates one names its Version as read. Bodies of more than
// interlock.MaxReadBytes together are as they were when Handle was called.
func (j *Job) Documents() []interlock.Document { return j.documents }

// Document is the one of a key, absent if there is none.
func (j *Job) Document(key interlock.Key) interlock.Document {
	for i := range j.documents {
		if j.documents[i].Key == key {
			return j.documents[i]
		}
	}
	return interlock.Document{Key: key, Absent: true}
}

// AsOf is the version of the namespace's state when the job was handed out: with it as
// Done.AsOf, nothing is written if one of the keys has changed since.
func (j *Job) AsOf() interlock.Version { return j.asOf }

// Decode reads the task's payload.
func (j *Job) Decode(v any) error {
	if err := json.Unmarshal(j.task.Payload, v); err != nil {
		return fmt.Errorf("the payload of task %v: %w", j.task.ID, err)
	}
	return nil
}

// Attempt counts the goes at the task, this one included, from 1.
func (j *Job) Attempt() int { return j.task.Attempt }

// RetryAfter marks an error of Handle so that the task is tried again after d, instead of after
// the queue's pause; with d 0, at once.
func RetryAfter(d time.Duration, err error) error { return &verdict{error: err, delay: d, timed: true} }

// Dead marks an error of Handle so that the task is not tried again: the task is a dead letter.
func Dead(err error) error { return &verdict{error: err, dead: true} }

// NeedsApproval is the error of a Handle that cannot go on before a person has decided.
// The attempt ends without being counted, and the task holds nothing meanwhile; when it
// is approved it is handed out again, with the answer in Task.Approval, and when it is
// denied it is dead.
func NeedsApproval(q Question) error {
	return &verdict{error: errors.New("it waits for a decision: " + q.Text), question: &q}
}

// QuestionOf returns the question of an error that NeedsApproval made, as OnError gets it.
func QuestionOf(err error) (q Question, ok bool) {
	if v, is := errors.AsType[*verdict](err); is && v.question != nil {
		return *v.question, true
	}
	return Question{}, false
}

// verdict is an error of Handle that decides how its task continues.
type verdict struct {
	error
	delay    time.Duration
	timed    bool
	dead     bool
	question *Question
}

func (v *verdict) Unwrap() error { return v.error }

// PanicError is a panic of Handle.
type PanicError struct {
	Value any
	Stack []byte // of the goroutine
}

// Error returns the first line of the value that it panicked with.
func (e *PanicError) Error() string {
	line, _, _ := strings.Cut(fmt.Sprint(e.Value), "\n")
	return "panic: " + line
}

// Unwrap returns the value that it panicked with, if that is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}
