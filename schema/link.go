package schema

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// Limits of links.
const (
	MaxURLLen   = 2048 // characters, not bytes, of a long URL
	MaxTitleLen = 200  // characters
	MaxTags     = 10   // of one link
	MaxTagLen   = 32   // characters from [a-z0-9_-]
	MaxFormer   = 10   // former hashes of one link
	PageSize    = 20   // links per page of a list, unless a filter has another number
)

// TrashTTL is how long a deleted link can be restored.
const TrashTTL = 30 * 24 * time.Hour

// RestoreAgain is how long RestoreLink may be repeated for a client who has not got its answer.
const RestoreAgain = time.Minute

// Link is a short link. The pair (DomainID, Hash) is unique.
type Link struct {
	ID        int64
	AccountID int64
	DomainID  int64  // 0 for the default domain
	Host      string // of the domain, "" for the default domain; set by the store when it reads
	// DomainPathMode is the domain's, PathDefault for the default domain; set by the store when it reads.
	DomainPathMode PathMode
	Hash           string // case-sensitive
	// FormerHashes are hashes that the link had, in this order, and has kept: they lead to it, and belong to nobody else.
	// nil if there are none.
	FormerHashes []string
	URL          string // the long URL, unchanged
	Active       bool   // as its owner has set it; an inactive link is answered with 410
	Ordinal      int64  // 1, 2, 3, … among all links that the owner has created; of a deleted link times -1
	CreatedAt    time.Time
	UpdatedAt    time.Time // of the last LinkEdit, restoring or deletion, or of the import; else CreatedAt
	Version      int64     // 1 at first; each LinkEdit, RenameTag, restoring and deletion adds 1

	Title        string
	Tags         []string   // unique, in alphabetical order; nil if there are none
	ExpiresAt    time.Time  // from then on visitors do not reach URL; zero: never
	ExpiredURL   string     // where they are sent instead; "": they are answered with 410
	ForwardQuery bool       // the visitor's query string is appended to URL
	Behaviour    *Behaviour // nil: none
	ExternalID   string     // its owner's own ID of the link, see ValidExternalID; "": none
	// PasswordHash is an argon2id hash of the password with the version Behaviour.Password. A caller sets it to create a
	// link; stores return it by LinkPassword only.
	PasswordHash string

	Stopped Stop // set by the store when it reads
}

// LinkEdit is a change of a link. A nil field stays as it is.
type LinkEdit struct {
	URL, Title   *string
	Tags         *[]string // unique, in alphabetical order
	Active       *bool
	ExpiresAt    *time.Time // zero: never
	ExpiredURL   *string    // "": none
	ForwardQuery *bool
	// Behaviour takes the place of the behaviour that UpdateLink is given, and of no other one; an empty one removes it.
	Behaviour    *Behaviour
	PasswordHash *string // belongs to Behaviour.Password; "": none
	// Names take the place of the names that UpdateLink is given, and of no others.
	Names      *LinkNames
	ExternalID *string // "": none

	// Unchanged applies the edit only to the Version of the link that UpdateLink is given.
	Unchanged bool
}

// LinkNames are all names of a link on its domain: its hash and its former hashes.
type LinkNames struct {
	Hash   string
	Former []string
}

// Rename returns the names of a link after it got another hash: it keeps the one that it had. A former hash may be its
// hash again.
func (n LinkNames) Rename(hash string) LinkNames {
	if hash == n.Hash {
		return n
	}
	former := slices.DeleteFunc(slices.Clone(n.Former), func(name string) bool { return name == hash })
	return LinkNames{hash, append(former, n.Hash)}
}

// Names returns the names of a link.
func (l Link) Names() LinkNames { return LinkNames{l.Hash, l.FormerHashes} }

// ErrHashTaken is the outcome of a link that gets a hash which is in use on the domain.
var ErrHashTaken error = Errorf(CodeConflict, "the hash is in use on the domain")

// LinkKey names a link.
type LinkKey struct {
	DomainID int64
	Hash     string
}

// Key returns the key of a link.
func (l Link) Key() LinkKey { return LinkKey{l.DomainID, l.Hash} }

// EdgeLink has the fields of a Link that an edge needs to answer a visitor and to record the click.
type EdgeLink struct {
	LinkID, AccountID int64
	URL               string
	Active            bool
	ExpiresAt         time.Time
	ExpiredURL        string
	ForwardQuery      bool
	Behaviour         *Behaviour
	Stopped           Stop
	// Beneath says that names on the domain begin with the name that was looked up and a slash, also of deleted links.
	Beneath bool
}

// BehaviourText returns the text of the new behaviour, nil if it stays.
func (e LinkEdit) BehaviourText() *string {
	if e.Behaviour == nil {
		return nil
	}
	return new(e.Behaviour.Text())
}

// PathMode returns what becomes of a path behind the link's name, which is never PathDefault. The mode of the default
// domain, which only edges know, is taken for PathNone.
func (l Link) PathMode() PathMode {
	mode, _ := l.Behaviour.Paths(l.URL)
	return cmp.Or(mode, l.DomainPathMode, PathNone)
}

// HasPattern reports whether PathPattern in the link's URL stands for the path behind the link's name.
func (l Link) HasPattern() bool { return l.Behaviour != nil && l.Behaviour.Pattern }

// Redirects reports whether visitors reach the long URL, unless the link has expired.
func (l Link) Redirects() bool { return l.Active && l.Stopped == NotStopped }

// ExpiredAt reports whether the link has expired at a time.
func (l Link) ExpiredAt(now time.Time) bool { return !l.ExpiresAt.IsZero() && !now.Before(l.ExpiresAt) }

// ValidTag reports whether tag has 1 to MaxTagLen characters from [a-z0-9_-].
func ValidTag(tag string) bool {
	for i := range len(tag) {
		if !tagChar[tag[i]] {
			return false
		}
	}
	return 0 < len(tag) && len(tag) <= MaxTagLen
}

// Stop says why a link does not redirect, in spite of its owner's settings.
type Stop string

// The reasons. The first that applies is the link's.
const (
	NotStopped Stop = ""
	Deleted    Stop = "deleted"    // DeleteLink
	TakenDown  Stop = "taken_down" // SetTakenDown
	Suspended  Stop = "suspended"  // its owner's account is suspended
	HostLost   Stop = "host_lost"  // its domain is not, or no longer, verified
)

// LinkStore stores links.
type LinkStore interface {
	// CreateLink stores link and sets its ID, Ordinal and Version, and UpdatedAt if it is zero. ErrExternalIDTaken as in
	// UpdateLink, at the time of creation, whether or not the hash is in use. CodeConflict if the hash is in use on the
	// domain, or was deleted there by another account; CodeNotFound if there is no such domain; neither uses up an
	// ordinal. Of concurrent calls for one hash exactly one succeeds. A hash that its account has deleted becomes a new
	// link with a new ID; only a take-down by the operator is kept. A former hash of a link is in use as long as the link
	// exists, and was deleted with it; it stays so when the link's own hash becomes a new link.
	CreateLink(ctx context.Context, link *Link) error
	// CreateLinks creates the links of batch in one transaction, each as CreateLink does, and sets batch.Errs to
	// CreateLink's outcomes for them. Their ordinals follow each other in the order of batch.Links. Of links with the same
	// hash on a domain the first gets it. After an error no link has been created, unless it is CodeUnavailable: then all
	// or none have. CodeNotFound if there is no such account. A link that batch.Reuse finds stands for the new one; of
	// concurrent calls whose links could stand for each other one creates a link.
	//
	// The store keeps batch.Call in the same transaction. ErrCallRepeated if a call with the key has been recorded,
	// ErrCallUnderWay if another process is about to, ErrTooManyKeys if the account has used MaxIdempotencyKeys. A few
	// calls past their time are deleted with each one that is recorded.
	CreateLinks(ctx context.Context, batch *LinkBatch) error
	// UpdateLink applies edit to the link with link.ID and sets *link to the result. UpdatedAt becomes at. Concurrent
	// calls that change different fields all take effect. CodeNotFound if there is no such link, or it was deleted;
	// CodeConflict if edit.Unchanged is set and the stored version differs from link.Version, or edit.Behaviour is set and
	// the stored behaviour differs from link.Behaviour. Of concurrent calls with Unchanged for a version one succeeds.
	//
	// With edit.Names, the hash of the link becomes edit.Names.Hash, also if its account has deleted a link with it that
	// the operator has not taken down. Webhooks and shares of the link follow. edit.Names.Former are the other hashes that
	// lead to the link: the one that it had, former ones, or free ones. Former hashes that are not among them are free
	// from then on. ErrHashTaken if a new name is in use; CodeConflict if the link has other names than link, or was taken
	// down. LinkChanges have no Names.
	//
	// ErrExternalIDTaken if another link of the account has edit.ExternalID, unless that one was deleted longer than
	// TrashTTL before at.
	UpdateLink(ctx context.Context, link *Link, edit LinkEdit, at time.Time) error
	// RenameTag gives all links of an account that have the tag from the tag to instead, and returns how many these are. A
	// link that has both keeps to; "" for to removes the tag. UpdatedAt of the links becomes at. from and to are valid
	// tags.
	RenameTag(ctx context.Context, accountID int64, from, to string, at time.Time) (links int64, err error)
	// TagCounts counts the account's links with each tag: the first limit tags by name that come after a tag, "" for all.
	// Its cost is proportional to the number of the account's links with tags, which it does not read.
	TagCounts(ctx context.Context, accountID int64, after string, limit int) ([]TagCount, error)
	// TaggedLinks returns up to limit of the account's links that have tags and ordinals greater than ordinal, in this
	// order.
	TaggedLinks(ctx context.Context, accountID, ordinal int64, limit int) ([]TaggedLink, error)
	// DeleteLink deletes the link with link.ID of account link.AccountID. Its row stays to reserve its names, and is found
	// by LinksByHash, EdgeLinks and LinkFilter.DeletedAfter only. CodeNotFound if the account has no such link, or it was
	// deleted before.
	DeleteLink(ctx context.Context, link Link, at time.Time) error
	// DeleteUnchanged is DeleteLink for a link that still has the version link.Version. CodeConflict if it has another.
	DeleteUnchanged(ctx context.Context, link Link, at time.Time) error
	// ChangeLinks edits or deletes the links of changes in one transaction, and sets changes.Errs to UpdateLink's or
	// DeleteLink's outcomes for them. It keeps changes.Call as CreateLinks does. After an error nothing has changed,
	// unless it is CodeUnavailable: then all or nothing has.
	ChangeLinks(ctx context.Context, changes *LinkChanges) error
	// RestoreLink restores the account's link with that hash which was deleted after a time, as it was, with the ID and
	// ordinal that it had; UpdatedAt becomes at. domainID picks one as in FindOwnedLink. A link that was restored within
	// RestoreAgain before at is returned as it is. CodeConflict if a new link has taken the hash; CodeNotFound if it is
	// not deleted, was purged, or its domain was deleted.
	RestoreLink(ctx context.Context, accountID int64, hash string, domainID *int64, deletedAfter,
		at time.Time) (Link, error)
	// RestoreLinks restores up to MaxLinkBatch links of the account that were deleted after a time, as RestoreLink does,
	// in one transaction, and returns how many these are. It leaves out links that RestoreLink would not find.
	RestoreLinks(ctx context.Context, accountID int64, ids []int64, deletedAfter, at time.Time) (int64, error)
	// RestoreAs restores the account's link with link.ID that was deleted after a time and has link.Version, applies edit
	// to it, both or neither, and sets *link to the result; UpdatedAt becomes at. CodeConflict if there is no such link.
	RestoreAs(ctx context.Context, link *Link, edit LinkEdit, deletedAfter, at time.Time) error
	// PurgeLinks removes everything but hash and take-down from up to limit links that were deleted at a time or before,
	// which then cannot be restored. It returns how many these are.
	PurgeLinks(ctx context.Context, deletedBy time.Time, limit int) (int64, error)
	// FoldLinks lets searches find up to limit links that a program without folds has stored, and returns how many these
	// are. Edits in between are kept, and several processes may call it at once.
	FoldLinks(ctx context.Context, limit int) (int64, error)
	// LinksByHash returns the links with the keys, whether or not they are active or deleted, in any order. A former hash
	// stands for its link, here and in all methods that find links by hash. Keys without a link are left out. The link of
	// a key that is given twice may come twice. FindLink finds one.
	LinksByHash(ctx context.Context, keys []LinkKey) ([]Link, error)
	// EdgeLinks returns the destinations of the links with the keys, in the order of the keys. A key without a link has
	// the zero EdgeLink.
	EdgeLinks(ctx context.Context, keys []LinkKey) ([]EdgeLink, error)
	// Links returns a page of the account's links that match filter, in its order, and the number of all that match,
	// consistent with each other. Pages count from 1; a page after the last one is empty. With the zero filter
	// each page costs the same; otherwise the cost is proportional to the number of the account's links.
	Links(ctx context.Context, accountID int64, filter LinkFilter, page int64) (links []Link, total int64, err error)
	// LinkIDs returns the IDs of the account's links that match filter, in its order: all of them, or the first limit. Its
	// cost is proportional to the number of the account's links.
	LinkIDs(ctx context.Context, accountID int64, filter LinkFilter, limit int) ([]int64, error)
	// LinksAfter returns up to limit of the account's links that match filter and follow a position, in the order of the
	// filter. Its cost is proportional to the number of links that it passes.
	LinksAfter(ctx context.Context, accountID int64, filter LinkFilter, after LinkPosition, limit int) ([]Link, error)
	// NumberChanges numbers up to limit changes of the account's links that have no number, and returns how many these
	// are. A change is what adds to a link's Version, and what sets or clears TakenDown or HostLost; of several changes of
	// a link the last one counts. The numbers of an account grow, and become visible in their order.
	NumberChanges(ctx context.Context, accountID int64, limit int) (int64, error)
	// ChangedLinks returns up to limit of the account's links that match filter and were made or have got a number after a
	// position, and the position after them, from which the next call goes on. So calls return each link after its
	// creation, and again after each change that has got a number. Deleted links are among them, also purged ones, unless
	// their domain was deleted, too. Orders and DeletedAfter of filter do not apply. CodeNotFound if the store has not
	// come as far as the position.
	ChangedLinks(ctx context.Context, accountID int64, filter LinkFilter, after LinkChangePosition, limit int) ([]Link,
		LinkChangePosition, error)
	// OwnedLinks returns the account's links with the hashes, links on the default domain first, then the oldest.
	// FindOwnedLink finds one.
	OwnedLinks(ctx context.Context, accountID int64, hashes []string) ([]Link, error)
	// ExternalLink returns the account's link with an external ID, which may be a deleted one that RestoreLink finds.
	// CodeNotFound if there is none.
	ExternalLink(ctx context.Context, accountID int64, externalID string, deletedAfter time.Time) (Link, error)
	// NoteTargets lets ReusableLink find up to limit more of the account's links, and returns how many it does not find
	// yet: of accounts that reuse none, it finds none. Calls that create links with LinkBatch.Reuse note all links.
	NoteTargets(ctx context.Context, accountID int64, limit int) (left int64, err error)
	// ReusableLink returns the newest of the account's links that lead to a URL on a domain and for which match returns
	// true. It leaves out links that are inactive, deleted or taken down, have expired at a time or spent all clicks of
	// their limit, or ask for a password. CodeNotFound if there is none.
	ReusableLink(ctx context.Context, accountID int64, key ReuseKey, at time.Time, match func(Link) bool) (Link, error)
	// LinksByID returns the links with the IDs that are the account's, in any order.
	LinksByID(ctx context.Context, accountID int64, ids []int64) ([]Link, error)
	// LinkPassword returns the argon2id hash of the password of the link with an ID, and its version; "" and 0 if the link
	// asks for none. CodeNotFound if there is no such link, or it was deleted.
	LinkPassword(ctx context.Context, id int64) (hash string, version int64, err error)
	// SetTakenDown takes a link down or puts it back, for the operator of the service: it does not change Active.
	// Idempotent. CodeNotFound if there is no such link.
	SetTakenDown(ctx context.Context, domainID int64, hash string, takenDown bool) error
	// Readers returns how many reads the store executes at the same time.
	Readers() int
}
