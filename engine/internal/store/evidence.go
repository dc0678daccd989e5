package store

// WantsDocuments in Op of record.Queued or record.Granted marks a request that asked for documents.
const WantsDocuments = 1
