package journal

// stored are the values of events that have a codec, by the folder and the name of their struct.
// The functions are called append and read with the name of the struct.
var stored = []struct{ folder, name string }{
	{".", "Pattern"},
	{".", "TaskQueue"},
	{folder, "storedSettings"},
	{folder, "storedTask"},
	{folder, "Approval"},
	{folder, "Run"},
	{folder, "caller"},
	{folder, "verdict"},
	{folder, "LogText"},
	{".", "Webhook"},
	{folder, "WebhookState"},
	{folder, "WebhookProgress"},
}

// codecs are the tags of stored values. The structs of package interlock have theirs here, since
// they are also the types of package client, and the journal is none of its concern.
var codecs = scheme{
	key:     "journal",
	options: []string{"always", "required", "since"},
	table: map[string]map[string]string{
		"Pattern": {
			"Name": "1,always", "Shape": "2,always", "Aliases": "3", "Members": "4", "Capacity": "5", "Rate": "6", "Per": "7",
			"Burst": "8", "Groups": "9", "TTL": "12", "MaxTTL": "13", "Grace": "14", "MaxGrace": "15", "MaxHold": "16",
			"Stall": "17", "LockDelay": "18", "MaxWait": "19", "MaxWaiters": "20", "Allow": "21", "Preempt": "23",
			"Park": "24", "MaxPark": "25", "OnDeadlock": "26", "Write": "27", "Writer": "28", "WriterQueue": "29",
			"AuditRefusals": "30",
		},
		"Group": {"Name": "0", "Min": "1", "Max": "2"},
		"Rule":  {"Principal": "0", "Modes": "1"},
		"TaskQueue": {
			"Name": "1,required", "Paused": "2", "Drain": "3", "MaxAttempts": "4", "Backoff": "5", "MaxBackoff": "6",
			"TTL": "7", "Grace": "8", "MaxHold": "9", "Stall": "10", "MaxRunning": "11", "MaxTasks": "12", "Groups": "13",
			"Pull": "16", "Submit": "17", "Admin": "18", "Approvers": "19", "MinApprovals": "20",
			"Approval": "21",
		},
		"Share": {"Group": "0", "Weight": "1", "Max": "2"},
		"Settings": {
			"StrictOrder": "1", "NearMisses": "3", "Closed": "5", "EffectRetention": "6", "Quota": "16", "PrincipalQuota": "32",
		},
		"Quota": {
			"Keys": "0", "Leases": "1", "Waiters": "2", "Sessions": "3", "Requests": "4", "Bytes": "5", "Documents": "6",
			"State": "7",
		},
		"Webhook": {
			"Name": "1,required", "URL": "2", "Events": "3", "Key": "4", "Format": "5", "Paused": "6", "ApproveLinks": "7",
		},
		"Read":        {"Key": "0", "Version": "1", "Absent": "2", "Present": "3"},
		"Endorsement": {"By": "0", "Principal": "1", "Reason": "2"},
	},
}

// fingerprints are the tags of commands, with those of the structs of package interlock that
// commands have.
var fingerprints = scheme{
	key:     "fingerprint",
	options: []string{"omitzero", "default", "bit", "bare", "blank", "stored", "Count"},
	table: map[string]map[string]string{
		// The first version of acquire had neither a number of claims nor what is numbered +1 and more.
		"LeaseRequest": {
			"Flow": "1", "Purpose": "2", "Claims": "3,bare,Count=+1", "Terms": "4", "Priority": "5", "OnConflict": "6",
			"Any": "+2", "Prefix": "+3", "AsOf": "+9", "Documents": "+10", "MaxPosition": "+11", "TakeOver": "+12", "Trace": "-",
		},
		"Terms": {
			"TTL": "1", "Grace": "2", "MaxHold": "3", "Group": "+4", "Division": "+5", "Stall": "+6", "LockDelay": "+7",
			"MaxWait": "+8",
		},
		"Claim": {"Key": "1", "Mode": "2,default=Exclusive", "Count": "3"},
		"CommitRequest": {
			"Flow": "1", "Note": "2", "AsOf": "3", "Reads": "4", "Writes": "5", "Leases": "6,bare",
		},
		"Read": {"Key": "1", "Version": "2", "Absent": "3,bit=0", "Present": "3,bit=1"},
		"Write": {
			"Key": "1", "Op": "2", "ContentType": "3,default=JSONType", "Body": "4", "Delta": "5", "Min": "6,bit=0",
			"Max": "6,bit=1",
		},
		"TaskSpec": {
			"Queue": "1", "Kind": "2", "Payload": "3", "Purpose": "4", "Group": "5", "Key": "6", "Claims": "7", "Priority": "8",
			"Delay": "9", "Deadline": "10", "MaxAttempts": "11", "Backoff": "12", "MaxBackoff": "13", "Message": "14,bit=0",
			"Ask": "14,bit=1", "Trace": "-",
		},
		"Question": {"Text": "1", "Limit": "2", "OnLimit": "3,default=Denied", "Reads": "4"},
	},
}
