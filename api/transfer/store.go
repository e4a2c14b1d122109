package transfer

import (
	"crypto/sha256"
	"encoding/binary"
	"hash/maphash"
	"strconv"

	"linkstream/api/links"
	"linkstream/schema"
)

// store gives each row of a chunk its outcome. The rows that nobody has yet are created together. Another import, or an
// earlier row, may take an alias in between: these rows are looked up again.
func (s *session) store(items []*item) error {
	for range maxTries {
		open, again, err := s.lookUp(items)
		if err != nil || len(open.items) == 0 && !again {
			return err
		}
		if err := s.create(open); err != nil {
			return err
		}
	}
	for _, it := range items {
		if it.outcome == "" {
			s.fail(it, aliasError("The alias is already in use on this domain."))
		}
	}
	return nil
}

// openItems are rows that nobody has yet.
type openItems struct {
	items  []*item
	unused bool // none has the address of a link, not even of a deleted one
}

// lookUp decides on the rows whose link is there already, or whose alias is in use. It returns those whose alias is
// free. again says that there are others, which have got another hash.
func (s *session) lookUp(items []*item) (open openItems, again bool, err error) {
	var keys []schema.LinkKey
	for _, it := range items {
		if it.outcome == "" && it.findable() {
			keys = append(keys, it.key())
		}
	}
	found := make(map[schema.LinkKey]schema.Link, len(keys))
	if len(keys) > 0 {
		stored, err := s.links.LinksByHash(s.ctx, keys)
		if err != nil {
			return openItems{}, false, err
		}
		for _, link := range stored {
			for _, name := range append([]string{link.Hash}, link.FormerHashes...) {
				found[schema.LinkKey{DomainID: link.DomainID, Hash: name}] = link
			}
		}
	}
	open.unused = true
	for _, it := range items {
		if it.outcome != "" {
			continue
		}
		link, taken := schema.Link{}, false
		if it.findable() {
			link, taken = found[it.key()]
		}
		switch {
		case s.decide(it, link, taken):
		case taken && it.alias == "" && link.AccountID != s.account:
			it.attempt, it.refused, again = it.attempt+1, nil, true
		default:
			open.items = append(open.items, it)
			open.unused = open.unused && !taken
		}
	}
	return open, again, nil
}

// decide gives a row its outcome if the link with its alias decides it. taken is false if there is no such link.
func (s *session) decide(it *item, link schema.Link, taken bool) bool {
	mine := link.AccountID == s.account
	switch {
	case !taken && it.refused != nil: // not because of another link
		s.fail(it, it.refused)
	case !taken, mine && link.Stopped == schema.Deleted:
		return false // Create makes a deleted link anew
	case mine && (it.alias == "" || link.URL == it.request.LongURL):
		it.outcome, it.link = Present, link
	case it.alias == "":
		return false
	case mine:
		s.fail(it, aliasError("You have a link with this alias on this domain that leads elsewhere."))
	default:
		s.fail(it, aliasError("The alias is already in use on this domain."))
	}
	return true
}

func aliasError(problem string) error {
	return &schema.Error{Code: schema.CodeInvalid, Fields: map[string][]string{links.FieldCustomAlias: {problem}}}
}

// create creates the links of rows, or finds out in a preview which could be created.
func (s *session) create(open openItems) error {
	items := open.items
	requests := make([]links.Request, len(items))
	for i, it := range items {
		requests[i] = it.request
		hash := it.hash()
		requests[i].CustomAlias = &hash
	}
	if s.dry {
		errs, err := s.shortener.CheckAll(s.ctx, requests)
		for i, err := range errs {
			s.previewed(items[i], err)
		}
		return err
	}
	createAll := s.shortener.CreateAll
	if open.unused {
		createAll = s.shortener.CreateUnused
	}
	results, err := createAll(s.ctx, requests)
	for i, result := range results {
		switch {
		case result.Err == nil:
			items[i].outcome, items[i].link = Created, result.Link
		case items[i].findable() && onlyAlias(result.Err):
			items[i].refused = result.Err
		default:
			s.fail(items[i], result.Err)
		}
	}
	return err
}

// onlyAlias reports whether nothing but the alias is wrong with a request.
func onlyAlias(err error) bool {
	e, ok := err.(*schema.Error)
	return ok && len(e.Fields) == 1 && e.Fields[links.FieldCustomAlias] != nil
}

// previewed gives a row of a preview its outcome: like that of an import for an address that an earlier row has.
func (s *session) previewed(it *item, err error) {
	if err != nil {
		s.fail(it, err)
		return
	}
	it.outcome = Created
	key := it.key()
	address := maphash.String(s.seed, strconv.FormatInt(key.DomainID, 10)+"/"+key.Hash)
	target := maphash.String(s.seed, it.request.LongURL)
	switch earlier, again := s.seen[address]; {
	case again && earlier == target:
		it.outcome = Present
	case again:
		s.fail(it, aliasError("An earlier row has this alias for another long URL."))
	case len(s.seen) < maxAliases:
		s.seen[address] = target
	}
}

// findable reports whether a link may have the address of a row.
func (it *item) findable() bool {
	problems := it.request.Malformed
	return problems[links.FieldDomainID] == nil && problems[links.FieldCustomAlias] == nil && schema.ValidHash(it.hash())
}

func (it *item) key() schema.LinkKey {
	return schema.LinkKey{DomainID: domainID(it.request), Hash: it.hash()}
}

// hash returns the alias of a row or, if it has none, the hash that follows from what it asks for.
func (it *item) hash() string {
	if it.alias != "" {
		return it.alias
	}
	return derivedHash(it.request.AccountID, domainID(it.request), it.request.LongURL, it.attempt)
}

// derivedHash returns the hash of a link that was imported without an alias. The next attempt gives another one, in
// case the hash is in use. Anyone who knows account and long URL can compute the hash, which leads nowhere else.
//
// It must not change: otherwise an import that is run again by a newer release creates its links a second time.
func derivedHash(accountID, domainID int64, longURL string, attempt int) string {
	text := strconv.AppendInt([]byte("linkstream import 1\x00"), accountID, 10)
	text = strconv.AppendInt(append(text, 0), domainID, 10)
	text = strconv.AppendInt(append(text, 0), int64(attempt), 10)
	sum := sha256.Sum256(append(append(text, 0), longURL...))
	return schema.HashOf(binary.BigEndian.Uint64(sum[:8]))
}
