package schema

import "context"

// Names of shared values.
const (
	SharedPasswordKey = "password key" // a random key: see PasswordToken, and package edge/password
	SharedAPI         = "api"          // the base URL of one api, for edges of version 1.0
	// SharedAPIs begins the names of values that apis change every 20 seconds. The names end with their base URLs.
	SharedAPIs = "api "
	// SharedVisitorKeys begins the names of the keys of visitors' hashes, which end with their UTC day: see package
	// edge/visitorhash. They are the only shared values that a move to other engines copies.
	SharedVisitorKeys = "visitor key "
)

// ValueStore keeps values that all processes of a service share.
type ValueStore interface {
	// SharedValue returns the value with a name. If the name has no value, SharedValue stores first, unless first is
	// empty: all callers, also concurrent ones, get the same value. CodeNotFound without a value and first.
	SharedValue(ctx context.Context, name string, first []byte) ([]byte, error)
	// SetSharedValue stores a value, in place of an earlier one.
	SetSharedValue(ctx context.Context, name string, value []byte) error
	// SharedValues returns the values whose names begin with a prefix, which is not empty.
	SharedValues(ctx context.Context, prefix string) (map[string][]byte, error)
	// DeleteSharedValues deletes the values whose names are from one name up to before another one, in the order of bytes.
	DeleteSharedValues(ctx context.Context, from, before string) error
}
