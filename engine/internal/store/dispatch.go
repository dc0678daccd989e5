package store

// Dismissal is the idle workers of one principal that have lost their queue, or the right to
// pull from it. They belong to no crew of the queue any more, so nothing is handed to them.
type Dismissal struct {
	Crew *WorkerGroup
	No   *Refusal
}
