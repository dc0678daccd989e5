package merger

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/merge"
	"github.com/interlockdev/interlock/merge/sequence"
)

// Submission is the payload of a task of the queue.
type Submission struct {
	// ID names the submission, in the form of git.CheckName. Empty means the id of its task.
	ID string `json:"id,omitempty"`
	// Resubmits is the ID of a submission that was returned to the same agent: this one takes its place in line.
	Resubmits string `json:"resubmits,omitempty"`
	// On is the ID of the submission that this one builds on: it lands after that one. See stack.go.
	On string `json:"on,omitempty"`
	// Head is the commit to land; the repository must have it. Base and Style are as in merge.Submission.
	Head  string      `json:"head"`
	Base  string      `json:"base,omitempty"`
	Style merge.Style `json:"style,omitempty"`
	// Message is the text of the landing's commit. Empty means that of Head.
	Message string `json:"message,omitempty"`
	// Workspace is where it was made, and WorkspaceID tells that one from others of the name. It takes the place of the
	// workspace's last submission if that was returned, and supersedes it if it waits.
	Workspace   string `json:"workspace,omitempty"`
	WorkspaceID string `json:"workspace_id,omitempty"`
	// Allow lists what the author means, and guards would return: see Allowable.
	Allow []Why `json:"allow,omitempty"`
	// Impacts names what the change can affect, for lanes: see train.Submission.
	Impacts []string `json:"impacts,omitempty"`
}

// State is where a submission is.
type State string

// The states of a Record.
const (
	Waiting  State = "waiting"
	Landed   State = "landed"
	Returned State = "returned"
	// Superseded is one that a newer submission of its workspace has replaced.
	Superseded State = "superseded"
	// Withdrawn is the code of an outcome only: a withdrawn submission has no record.
	Withdrawn State = "withdrawn"
)

// Record is what is durable of a submission besides its task.
type Record struct {
	Submission
	State State `json:"state"`
	// Task is the present task. A resubmission has another one than the first.
	Task string `json:"task"`
	// Place orders the line. It is the fence of the first task's lease, or of that of another submission, before which
	// this one stands by its priority: then Ahead is its own. See train.Submission.
	Place uint64 `json:"place"`
	Ahead uint64 `json:"ahead,omitempty"`
	// Priority is that of the task.
	Priority int `json:"priority,omitempty"`
	// Tries counts the times that it was returned.
	Tries int `json:"tries"`
	// Submitted and Admitted are seconds since 1970: when the task was made, and when the merger first had it. They
	// become the dates of the landing's commit, so that it can be computed again.
	Submitted int64 `json:"submitted"`
	Admitted  int64 `json:"admitted"`
	// Agent, Principal and Purpose are those of the task.
	Agent     string `json:"agent,omitempty"`
	Principal string `json:"principal,omitempty"`
	Purpose   string `json:"purpose,omitempty"`
	// From is the head of the squash that it goes on from: see line.goesOn.
	From string `json:"from,omitempty"`
	// Onto is the head of the submission that it builds on, if that one lands as a squash.
	Onto string `json:"onto,omitempty"`
	// Measured is set when Impacts are those that the merger has found.
	Measured bool `json:"measured,omitempty"`
	// Resolving is set while a resolver has a conflict of it, and Resolutions counts the conflicts that resolvers have
	// resolved. Resolved is the last one; its commit is Head. Unresolved is why a resolver had no result.
	Resolving   *Resolving `json:"resolving,omitempty"`
	Resolutions int        `json:"resolutions,omitempty"`
	Resolved    *Resolved  `json:"resolved,omitempty"`
	Unresolved  string     `json:"unresolved,omitempty"`
	// Clashes are submissions that were in line when this one came, and conflict with it, the nearest ahead first. It
	// is a forecast: any of them may have left the line since.
	Clashes []Clash `json:"clashes,omitempty"`
	// Outcome is set when it has landed or was returned.
	Outcome *Outcome `json:"outcome,omitempty"`
}

// Clash is a submission in line that conflicts with another one. Agent, Purpose and Paths are other agents' text.
type Clash struct {
	Submission string `json:"submission"`
	Agent      string `json:"agent,omitempty"`
	Purpose    string `json:"purpose,omitempty"`
	// Ahead is set if it stands before the other one, and so lands first.
	Ahead bool `json:"ahead"`
	// Paths are those in conflict, at most 20. More has the number of the others.
	Paths []string `json:"paths"`
	More  int      `json:"more_paths,omitempty"`
}

// Target is the document of a target.
type Target struct {
	Ref string `json:"ref"`
	// Repository is the id of the repository: see merge.Identity. Documents of earlier versions have none.
	Repository string `json:"repository,omitempty"`
	Head       string `json:"head"`
	Sequence   uint64 `json:"seq"`
	Profile    string `json:"profile"`
	// Leases are the rules for leases of the merger that had the seat last.
	Leases []LeaseRule `json:"leases,omitempty"`
	// Staged is what moves, or has moved, from Head.
	Staged *Staged `json:"staged,omitempty"`
}

// Staged is a move of the target with all its landings, and the submissions that go back with it.
type Staged struct {
	// By is the credential of the merger, as the server has it. It is empty without credentials, and in documents of
	// earlier versions.
	By       string    `json:"by,omitempty"`
	Old      string    `json:"old"`
	New      string    `json:"new"`
	Landings []Landing `json:"landings"`
	// Signatures are those of the landings' commits, in their order. None where landings are not signed.
	Signatures []string   `json:"signatures,omitempty"`
	Returns    []*Outcome `json:"returns,omitempty"`
}

// Landing is one landing.
type Landing struct {
	Sequence   uint64 `json:"seq"`
	Submission string `json:"submission"`
	Task       string `json:"task"`
	Commit     string `json:"commit"`
	Tree       string `json:"tree"`
	Parent     string `json:"parent"`
	Profile    string `json:"profile"`
	// Carrier is the merge commit of the forge that has brought it to the target, if one did.
	Carrier string `json:"carrier,omitempty"`
	// Style and Head are those of the submission.
	Style merge.Style `json:"style,omitempty"`
	Head  string      `json:"head,omitempty"`
	// Agent and Purpose are the author's.
	Agent   string `json:"agent,omitempty"`
	Purpose string `json:"purpose,omitempty"`
	// Paths are the changed paths, at most 200. More has the number of the others.
	Paths []string `json:"paths,omitempty"`
	More  int      `json:"more_paths,omitempty"`
	// Resolved is set if a resolver merged the submission with the target first.
	Resolved *Resolved `json:"resolved,omitempty"`
	// Renamed are new files that have another number than in the submission.
	Renamed []sequence.Rename `json:"renamed,omitempty"`
	// Allowed lists what guards found and the author allowed.
	Allowed []Why `json:"allowed,omitempty"`
	// Held are leases of others on its paths, at most 20, where they are only named.
	Held []Holder `json:"held,omitempty"`
	// Apart is set if this tree was not checked, because another lane has landed before it.
	Apart bool `json:"apart,omitempty"`
	// Principal is the credential that submitted it.
	Principal string `json:"principal,omitempty"`
	// Checks are those that the tree has passed, or the later tree that it landed with.
	Checks []string `json:"checks,omitempty"`
	// Passed are the verdicts that let it land. Landings of earlier versions have none.
	Passed []Pass `json:"passed,omitempty"`
	// Admitted is when a merger had it first, At when the landing was staged: milliseconds since 1970, by the merger's
	// clock. Landings of earlier versions have neither.
	Admitted int64 `json:"admitted_ms,omitempty"`
	At       int64 `json:"at_ms,omitempty"`
}

// Pass is a check that a tree has passed.
type Pass struct {
	Check string `json:"check"`
	// Tree is that of the landing, or of a later one that landed with it. Of one that landed apart it is the tree of its
	// lane.
	Tree string `json:"tree"`
	// Task is the run, Principal the credential that reported its result; empty without credentials.
	Task      string `json:"task"`
	Principal string `json:"principal,omitempty"`
}

// Why is the reason why a submission was returned.
type Why string

// The reasons of a returned submission.
const (
	WhyConflict Why = "conflict" // the target has changed the same lines
	WhyChecks   Why = "checks"   // its checks fail on the target
	WhySequence Why = "sequence" // it takes a number that is taken
	WhyNames    Why = "names"    // it adds names that some file systems cannot have
	WhyDeletion Why = "deletion" // it deletes most files of the target
	WhyReverted Why = "reverted" // it builds on what was reverted on the target since
	WhyHeld     Why = "held"     // another agent holds a lease on one of its paths
	WhyPolicy   Why = "policy"   // it cannot be a submission: a missing commit, a limit, another one's place
	WhyRefused  Why = "refused"  // the target's repository, such as a forge, does not take it
	WhyFailed   Why = "failed"   // the merger fails on it, and on no other
	// WhyBase is that the submission which it builds on does not land.
	WhyBase Why = "base_returned"
)

// Outcome is the result of a submission's task.
type Outcome struct {
	// Code is Landed, Returned, Withdrawn or Superseded.
	Code       State  `json:"code"`
	Submission string `json:"submission"`
	Target     string `json:"target"`
	// Landing is set if it landed.
	Landing *Landing `json:"landing,omitempty"`
	// By is the submission that has superseded it, or the one that it builds on and that does not land.
	By string `json:"by,omitempty"`
	// Reason is set if it was returned, and Against has the landing that it was tried on.
	Reason  Why      `json:"reason,omitempty"`
	Against *Against `json:"against,omitempty"`
	// Cause tells more about the reasons refused, failed and policy, and Words are those of git, of the forge or of a hook
	// there: others' text, at most 2 KiB.
	Cause Cause  `json:"cause,omitempty"`
	Words string `json:"words,omitempty"`
	// Conflicts are the paths in conflict, with hunks.
	Conflicts []Conflict `json:"conflicts,omitempty"`
	// Checks are those that failed.
	Checks []CheckResult `json:"checks,omitempty"`
	// Sequence has a sentence for each number that is taken.
	Sequence []string `json:"sequence,omitempty"`
	// Tries counts the returns, this one included; the submission keeps its place. After MaxTries a person decides.
	Tries int `json:"tries,omitempty"`
	// Message is what happened and what to do, for a person or an agent. Texts of others in it are quoted.
	Message string `json:"message"`
}

// OutcomeOf returns the outcome of a submission's task, which is empty unless the task is done.
func OutcomeOf(t *interlock.Task) (o Outcome, err error) {
	if t.State != interlock.TaskDone {
		return o, nil
	}
	if err := json.Unmarshal(t.Result, &o); err != nil {
		return o, fmt.Errorf("the result of task %s is not the merger's: %w", t.ID, err)
	}
	return o, nil
}

// Against is the head of the target at a landing.
type Against struct {
	Sequence uint64 `json:"seq"`
	Commit   string `json:"commit"`
}

// Conflict is a path in conflict, with the landings that changed it, newest first.
type Conflict struct {
	merge.Conflict
	LandedBy []LandedBy `json:"landed_by,omitempty"`
}

// LandedBy is a landing that changed a path. Agent and Purpose are other agents' text.
type LandedBy struct {
	Sequence uint64 `json:"seq"`
	Agent    string `json:"agent,omitempty"`
	Purpose  string `json:"purpose,omitempty"`
}

// CheckResult is a check that failed. Tail is the worker's text.
type CheckResult struct {
	Name string `json:"name"`
	Tail string `json:"tail,omitempty"`
	// PassedAlone is set if the same check has passed on the submission's own tree: two changes that are good apart
	// are bad together.
	PassedAlone bool `json:"passed_alone"`
}

// Verdict is what is known of one check of one tree. One pass is enough.
type Verdict struct {
	Passed bool `json:"passed"`
	// Runs counts the results, Failures those that failed. A tree with both is flaky.
	Runs     int `json:"runs"`
	Failures int `json:"failures"`
	// Tail is the end of the last failure's report, at most 4 KiB.
	Tail string `json:"tail,omitempty"`
	// Task is that of the last run, which has not ended if Running is set.
	Task    string `json:"task"`
	Running bool   `json:"running,omitempty"`
	// Principal is the credential that reported the last result.
	Principal string `json:"principal,omitempty"`
	// By is the credential of the merger that has kept the verdict, as Staged.By.
	By string `json:"by,omitempty"`
}

// Check is the payload of a check's task. A worker that finishes the task has passed the tree, unless its result is a
// Report of a failure; one that fails the task has not passed it.
type Check struct {
	Repo   string `json:"repo"`
	Target string `json:"target"`
	Check  string `json:"check"`
	Commit string `json:"commit"`
	Tree   string `json:"tree"`
}

// Report is the result of a check's task, for workers that have more to report than a line.
type Report struct {
	// Failed is set if the tree has not passed.
	Failed bool `json:"failed"`
	// Lost is set if the worker could not try the tree: it has no result, and Tail is why.
	Lost bool `json:"lost,omitempty"`
	// Tail is the end of the check's output, at most 4 KiB.
	Tail string `json:"tail,omitempty"`
}

// encode writes JSON with < and > as they are: hunks are full of them, and people and models read them.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("merger: " + err.Error()) // all types above can be written
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
