package history

import (
	"github.com/google/uuid"

	"agentd/exitcodes"
)

// NewRunID returns a new id: a UUIDv7, so that ids sort by time.
func NewRunID() string {
	id, err := uuid.NewV7()
	if err != nil {
		return uuid.NewString() // no randomness to be had for version 7: any id will do
	}
	return id.String()
}

// CheckRunID reports what is wrong with an id that came from outside; it
// becomes the name of a folder.
func CheckRunID(id string) error {
	parsed, err := uuid.Parse(id)
	if err != nil || parsed.String() != id {
		return exitcodes.Errorf(exitcodes.Usage, "%q is not a run id (a UUID in lower case)", id)
	}
	return nil
}
