package message

// ID names a message. Journals contain these numbers: the list is append-only, and a constant keeps
// its number for ever.
type ID uint16

// The messages. Package prose has their sentences, with a verb for each value.
const (
	None ID = iota // no message

	// Verbatim and parts.
	Verbatim
	InField
	AndMore
	Quoted
	UnnamedCaller

	// A key or a permit is in use. The first three are journaled in answers.
	KeyHeld
	LeasedExclusively
	KeptByOwnFlow
	TaskInHand
	PartiesMissing
	PermitsTaken
	PermitsNotForUngrouped
	PermitsNotForGroup
	NoTokens
	CallWaitsForRun

	// The server admits nothing new.
	ShuttingDown
	MemoryFull
	DiskFullKept
	DiskFull
	MemoryFullForWrites
	DiskFullForWrites
	TooManyPatternChanges

	// Limits and quotas.
	LeasesAndWaitersAtLimit
	LeasesAtQuota
	LeasesAtLimit
	PrincipalLeasesAtQuota
	KeysAtQuota
	KeysOverQuota
	PullsAtLimit
	TaskWaitsAtLimit
	ListenersAtLimit
	FollowersAtLimit
	WaitersAtLimit
	TheNamespace
	ThePrincipal
	TheLine
	SessionsAtLimit
	PrincipalSessionsAtQuota
	HearersAtLimit
	MembersAtLimit
	PatternsAtLimit
	QueuesAtLimit
	QueueAtLimit
	QueueFull
	TasksTooLarge
	DocumentsAtLimit
	DocumentsTooLarge
	NamespacesAllInUse
	NamespacesAtLimit
	NamespaceInUse
	NamespaceDeleted
	NamespaceDeletedStop
	EffectsAtLimit
	EffectsDone
	OldestMakesRoom
	SettleOpenEffects
	ForgetDoneEffects
	SettleWithLessText

	// The form of a request.
	NotBetween
	NotUpTo
	CountNotUpTo
	TooLong
	NotUTF8
	NamespaceLength
	NamespaceCharacters
	NameLength
	NameCharacters
	IDTaken
	RequestIDUsed
	NumberAcknowledged
	InvalidKey
	InvalidPart
	InvalidSegment
	HasSlash

	// What is wrong with a key, as the end of a sentence.
	KeyEmpty
	KeyTooLong
	KeyControlCharacter
	KeyEmptySegment
	KeyDotSegment
	KeySpaceAtEnd
	KeyTooDeep
	KeyNotUTF8
	KeyInvisibleCharacter
	KeyNotNormal

	// Claims.
	ClaimCount
	AlternativeCount
	AlternativeMode
	AlternativesTooLong
	UnknownMode
	ModeWithCount
	ClaimedTwice
	ClaimedTwiceRespelled
	BarrierNotAlone
	BarrierParties
	MembershipNotAlone
	PartCount
	ConversionClaimCount
	ConversionMode
	ConversionSkip
	ClaimsAndPrefix
	NoMemberWithPrefix
	KeyOrder
	NoCapacity
	TooManyPermits
	OfGroup
	PermitsNeverFree
	GiveBackOrAskFor
	GiveBackFirst
	ModeForbidden
	ModeForbiddenBelow
	NoPatternInClosed
	KeyFitsNoPattern
	ListPatterns
	UseShape
	UseKeySuchAs
	BarrierMismatch
	NotABarrierParty
	BarrierBroken
	NotSharedOut

	// Warnings.
	KeyAlmostSpelled
	KindAlmostSpelled
	GroupNotListed
	NotPreemptible
	LimitDenies

	// Leases, tickets and sessions.
	UnknownLease
	ConversionTicket
	StillInLine
	OnlyOffered
	NotARun
	NotATaskLease
	NotConvertible
	PastHardEnd
	YieldAsked
	YieldTaken
	SessionClosed
	SessionDied
	UnknownSession
	SessionNeeded
	NoSessionToWaitFor
	SeveralSessions
	WaitForWhom
	WaitForItself
	NothingToRevoke
	Fenced

	// The end of a lease: its name, what happened, how long its keys stay closed, the actor, the
	// reason, and the next step.
	LeaseOver
	TheRequest
	TheRun
	TheLease
	TheTaskLease
	TheDeclaredWait
	LeaseGone
	LeaseReleased
	LeaseExpired
	LeaseHeldTooLong
	LeaseStalled
	LeaseRevoked
	LeaseSessionClosed
	LeaseSessionDied
	OfferLapsed
	LineLeft
	WouldDeadlock
	LeaseConverted
	LeaseNotConverted
	WorkerFailed
	WorkerAsks
	PermitsGone
	TargetOver
	ParkedTooLong
	WaitedTooLong
	RunNotStarted
	PartyLeft
	LeasePreempted
	PartyLeftNamed
	MemberOver
	DeadlockVictim
	NobodyAsked
	KeysStayClosed
	EndedBy
	WhoWrote
	DropTask
	KeyTaken
	KeyClosed
	KeyFree
	ReleaseAndAcquireAll
	GatherAgain

	// Parked leases.
	KeepOrFree
	ParkTooLong
	ParkTaskLease
	ParkMode
	ParkForbidden
	ParkKeeps
	ParkFrees
	Parked
	ParkedAsks
	ParkedInLine
	NotParked
	ResumedAlready
	ParkDenied
	ParkAnswered
	NotResumed
	WaiterSessionClosed
	WaiterSessionDied
	WaiterSilent
	WaiterWouldDeadlock
	WaiterTooLong
	WaiterPermitsGone
	WaiterLeft

	// Commits and documents.
	NotRestored
	NamespaceDeletedSince
	FutureVersion
	Stale
	HasVersion
	NothingThere
	NotThereAnyMore
	AndMoreThanOthers
	AndOthersChanged
	NamedTwice
	WriteCount
	LeaseCount
	BodiesTooLarge
	DocumentsOfCommitTooLarge
	ReadCount
	ReadContradicts
	UnknownWrite
	WriteNotAdd
	WriteNotPut
	WriteWithBody
	CounterBounds
	DocumentTooLarge
	BadPatch
	BadContentType
	BadBody
	ContentTypeTooLong
	ContentTypeCharacters
	NotAMediaType
	JSONTooDeep
	NotJSON
	PatchOnOther
	NotACounter
	OutOfBounds
	VersionDemanded
	LeaseDemanded
	WriterQueueOnly
	WriterOnly
	VersionNotNamed
	TooManyReads
	DocumentsReadTooLarge
	VersionNotKept

	// Effects.
	EffectWithoutAction
	EffectNamedHow
	EffectSettledAs
	EffectUnknownAlready
	ResultOfUndone
	ResultNotJSON
	EffectMayHaveHappened
	EffectClaimed
	EffectDone
	EffectNotDone
	EffectAgeToForget
	UnknownEffect
	ClaimForgotten
	NothingClaimed

	// Patterns and settings.
	PatternName
	BadShape
	BadAlias
	AliasCount
	AliasVariables
	MemberForm
	BadMember
	MemberMisfit
	MemberCount
	NumbersTooLarge
	BurstWithoutRate
	RateTooHigh
	BucketTooSlow
	GroupCount
	GroupsWithoutCapacity
	UnknownPatternValue
	AboveMaximum
	GroupNumbers
	GroupTwice
	GroupMinimums
	AllowCount
	AllowMode
	WriteUnknown
	WriterTwice
	WriterMissing
	WriterWithoutPolicy
	TheShape
	TheAlias
	SameKeys
	UnknownPattern
	UnknownRevision
	NoEarlierRevision
	QuotaNegative
	QuotaOfKeys
	QuotaOfDocuments
	EffectRetention
	ShapeLength
	ShapeBraceClosed
	ShapeBraceOpen
	ShapeRestLast
	ShapeVariableName
	ShapeVariableKind
	ShapeAmbiguous
	ShapeVariableCount
	ShapeFitsNone

	// Rights.
	GroupForbidden
	NotListed
	SubmitTo
	SendTo
	PullFrom
	NoAdministrators
	NotAdministrator
	ChangeForeignTask
	ChangeQueue
	NotAWorker
	ApproversWithoutCredentials
	NotAnApprover
	OwnWork
	SubmittedTask
	AskedOrWorked
	OwnLease

	// Questions.
	UnknownVerdict
	AnswererMissing
	AnswererPolicy
	TaskAsksNobody
	TaskAnswered
	LeaseAsksNobody
	LeaseAnswered
	QuestionEmpty
	QuestionLimitVerdict

	// Tasks.
	UnknownTask
	TaskIs
	TaskSettled
	TaskNotReplayable
	TaskNotSettled
	UnknownTaskChange
	AttemptForgotten
	AttemptReplied
	AttemptMoved
	TaskIsNow
	TaskWith
	PullLeaseTaken
	WorkerSessionOver
	FollowerSessionOver
	FollowOwnTask
	FollowDeadlock
	OwnAttempt
	MessageWithQueue
	TaskWithKey
	NoWriter
	PayloadTooLarge
	PayloadNotJSON
	DeadlineBeforeDelay
	TaskClaimCount
	TaskMode
	NeverTogether
	PullCount
	PullWithoutIDs
	ResultTooLarge
	ResultNotOneJSON
	FollowUpCount
	FollowUpsTooLarge

	// Queues.
	UnknownQueue
	QueueDrains
	QueueInUse
	QueueIsWriter
	BelowMinimum
	BelowOther
	BelowZero
	QueueGroupCount
	QueueGroupTwice
	GroupWeight
	GroupMaxNegative
	GroupMaxAboveQueue
	AccessCount
	AccessEntry

	// Waiting.
	TooFarBack

	// Why a task is dead, or why its question was answered. Journaled.
	TaskPastDeadline
	TaskGivenUp
	TaskNeverPermitted
	TaskLastAttempt
	TaskDenied
	TaskDeniedSaying
	AnsweredByNone
	AnsweredByFew

	// What a namespace has: sessions, leases, parked leases with freed keys, waiters, unfinished
	// tasks, dead letters, documents, unsettled effects, done effects, log entries, patterns, queues,
	// settings and webhooks, as numbers. Journaled.
	NamespaceContents

	// Why the outcome of an effect is not known.
	EffectLeaseEnded
	EffectSessionEnded
	EffectTimeOut

	// Webhooks.
	UnknownWebhook
	WebhooksAtLimit
	AllWebhooksAtLimit
	WebhookURLLength
	WebhookEventCount
	WebhookFormatUnknown
	AnotherQuestion
	PartTTL

	// Moves between shards.
	NamespaceMoving
	MoveOutOfOrder

	// A request to yield.
	NoWaiter

	// A lease that its client has lost.
	LeaseForgotten

	// A rate without its unit.
	RateWithoutPer

	// Keys and queues of the merge queue.
	ReservedKey
	ReservedQueue

	// A claim below a key with rules.
	ModeForbiddenAbove

	// Answers by links.
	LinkUnconfirmed
	ApprovedAlready

	// A lease that has passed to the next process of its holder.
	LeaseTakenOver
	end // of the list: a new message goes before it, behind all others
)

// Count is the number of IDs, None included.
const Count = int(end)
