package schema

import "time"

// MaxLinkBatch is how many links one call of CreateLinks or ChangeLinks may have.
const MaxLinkBatch = 1000

// LinkBatch is links of one account that are created together.
type LinkBatch struct {
	AccountID int64
	// Links are created in this order. CreateLinks sets what CreateLink sets, AccountID, and the Hash of a link that has
	// none.
	Links []Link
	// Unused says that the caller has just found that no link has the hashes. It saves the store a look-up; the outcome is
	// the same if a hash has been taken since.
	Unused bool
	// NewHash draws a hash for a link that has none. It is called again if the hash is in use.
	NewHash func() string
	// Reuse has a function for each of Links, unless it is nil. An existing link stands for a new one if ReusableLink
	// finds it by the new link's ReuseKey and function, and so does an earlier one of Links. A link whose function is nil
	// is new. CreateLinks sets Reused, and Links to the links that stand for others.
	Reuse  []func(Link) bool
	Reused []bool
	// Call is recorded with the links, unless it is nil. Answer returns the record, given the links with their hashes, and
	// the outcome of each; if the record is nil, the call is not recorded. Answer may be called several times.
	Call   *IdempotentCall
	Answer func(links []Link, errs []error) ([]byte, error)
	// Errs is the outcome of each link. CreateLinks sets it.
	Errs []error
}

// MaxDraws bounds the search for a free hash. With a billion links one random hash in 3500 is taken, so that many taken
// hashes in a row have another cause.
const MaxDraws = 8

// ErrNoFreeHash means that MaxDraws hashes were in use.
var ErrNoFreeHash = Errorf(CodeInternal, "%d random hashes in a row are in use", MaxDraws)

// LinkChanges are changes of links of one account that are made together.
type LinkChanges struct {
	AccountID int64
	IDs       []int64 // of the links, each once
	At        time.Time
	// Edit returns the edit of a link; an error becomes the link's outcome. nil deletes the links. It may be called
	// several times for a link, inside the transaction.
	Edit func(Link) (LinkEdit, error)
	// Call is recorded with the changes, unless it is nil. Answer returns the record, given what became of each link. It
	// may be called several times.
	Call   *IdempotentCall
	Answer func(errs []error) ([]byte, error)
	// Errs is the outcome of each link. ChangeLinks sets it.
	Errs []error
}
