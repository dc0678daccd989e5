package record

// MoveStep is a step of a namespace's move from one shard to another. The numbers are in journals.
//
//	source                              target
//	           MoveClosed                          MoveArriving        MoveArrived
//	open ─────────────────► closed      (none) ─────────────► arriving ───────────► arrived
//	  ▲                     │   │                              │    ▲                │   │
//	  └─────────────────────┘   │                   MoveCopied └────┘                │   │
//	       MoveReopened         │                                         MoveOpened │   │
//	          MoveLeft          ▼                                                    ▼   │
//	                         left                                                 open   │
//	                                    (none) ◄────────── MoveDropped ──────────────────┘
//
// Package placement has the directory that decides which shard takes which step.
type MoveStep uint8

// The steps of the source, and those of the target.
const (
	MoveClosed   MoveStep = 1 // the namespace answers nothing any more, and its time stands still
	MoveReopened MoveStep = 2 // the move was taken back: it answers again
	MoveLeft     MoveStep = 3 // the target answers: the source forgets all but the name, and refuses what comes late
	MoveArriving MoveStep = 4 // a copy begins; an earlier part of a copy is forgotten
	MoveCopied   MoveStep = 5 // a piece of the copy
	MoveArrived  MoveStep = 6 // the copy is complete
	MoveOpened   MoveStep = 7 // the target answers
	MoveDropped  MoveStep = 8 // the move was taken back: the target forgets the copy
)

func (s MoveStep) String() string {
	names := [...]string{"", "closed", "reopened", "left", "arriving", "copied", "arrived", "opened", "dropped"}
	if int(s) < len(names) {
		return names[s]
	}
	return ""
}
