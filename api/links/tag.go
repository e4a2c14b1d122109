package links

import (
	"context"
	"iter"
	"slices"
	"time"

	"linkstream/api/reads"
	"linkstream/schema"
	"linkstream/schema/turns"
)

// TagCount counts the links with a tag and their clicks.
type TagCount struct {
	Tag           string
	Links, Clicks int64
}

// MaxTagCounts bounds the tags of one answer, because an account may have ten of its own on each link.
const MaxTagCounts = 10_000

// FieldAfter names the tag after which Tags begins in its errors.
const FieldAfter = "after"

// Tags returns the first MaxTagCounts tags of an account's links by name, of those after a tag; "" begins with the
// first one. more says that others follow. The tags have no clicks: see CountClicks. The cost is proportional to the
// number of the account's links. CodeInvalid if after is neither empty nor a tag.
func (s *Shortener) Tags(ctx context.Context, accountID int64, after string) (tags []TagCount, more bool, err error) {
	if v := newValidation(nil); after != "" {
		v.tag(FieldAfter, after)
		if err := v.outcome(); err != nil {
			return nil, false, err
		}
	}
	counts, err := s.links.TagCounts(ctx, accountID, after, MaxTagCounts+1)
	if err != nil {
		return nil, false, err
	}
	more = len(counts) > MaxTagCounts
	for _, count := range counts[:min(len(counts), MaxTagCounts)] {
		tags = append(tags, TagCount{Tag: count.Tag, Links: count.Links})
	}
	return tags, more, nil
}

// countedAtOnce is how many links with tags an account may have so that their clicks are counted by each call. A link
// with two tags counts twice.
const countedAtOnce = 50_000

// tagChunk is how many links with tags are read at a time.
const tagChunk = 100_000

// countLimits are the limits of counts of more links.
var countLimits = reads.Limits{
	Timeout: time.Minute, Pause: time.Second, Share: 10, Age: 5 * time.Minute, Keys: 50, AtOnce: 2,
}

// tagRange is the tags that one call of Tags returns.
type tagRange struct {
	account int64
	first   string
}

// CountClicks adds the clicks of an account's links to their tags, which Tags has returned. It reads all links that
// have tags, some at a time. If there are many of them, the clicks are those of the last count, and the next one goes
// on in the background: CodeBusy if the first one has not ended when ctx is done.
func (s *Shortener) CountClicks(ctx context.Context, clicks clickCounter, accountID int64, tags []TagCount) error {
	links := int64(0)
	for _, tag := range tags {
		links += tag.Links
	}
	asked := slices.Clone(tags) // a count may outlast the call
	count := func(ctx context.Context) (map[string]int64, error) { return s.clicksOf(ctx, clicks, accountID, asked) }
	if links <= countedAtOnce {
		sums, err := count(ctx)
		setClicks(tags, sums)
		return err
	}
	judge := func(counted reads.Result[map[string]int64]) reads.Use {
		for _, tag := range tags {
			if _, known := counted.Value[tag.Tag]; !known {
				return reads.Useless
			}
		}
		return reads.Old
	}
	counted, err := s.tagClicks.Of(ctx, turns.Account(accountID), tagRange{accountID, tags[0].Tag}, judge, count)
	switch {
	case counted != nil:
		setClicks(tags, counted.Value)
		return nil
	case err == nil:
		err = errCounting
	}
	return err
}

var errCounting = schema.ClientErrorf(schema.CodeBusy, "The clicks of your tags are being counted: try again in a few "+
	"seconds.")

func setClicks(tags []TagCount, clicks map[string]int64) {
	for i := range tags {
		tags[i].Clicks = clicks[tags[i].Tag]
	}
}

// Run returns when ctx is done and no count is under way any more.
func (s *Shortener) Run(ctx context.Context) { s.tagClicks.Run(ctx) }

// clicksOf returns the clicks of each of some tags. After an error some clicks are missing.
func (s *Shortener) clicksOf(
	ctx context.Context, clicks clickCounter, accountID int64, tags []TagCount,
) (map[string]int64, error) {
	sums := make(map[string]int64, len(tags))
	for _, tag := range tags {
		sums[tag.Tag] = 0
	}
	if len(tags) == 0 {
		return sums, nil
	}
	for links, err := range s.taggedLinks(ctx, accountID) {
		if err != nil {
			return sums, err
		}
		links = slices.DeleteFunc(links, func(link schema.TaggedLink) bool {
			return !slices.ContainsFunc(link.Tags, func(tag string) bool { _, asked := sums[tag]; return asked })
		})
		ids := make([]int64, 0, len(links))
		for _, link := range links {
			ids = append(ids, link.ID)
		}
		if len(ids) == 0 {
			continue
		}
		totals, err := clicks.ClickCounts(ctx, ids)
		for _, link := range links {
			for _, tag := range link.Tags {
				if _, asked := sums[tag]; asked {
					sums[tag] += totals[link.ID]
				}
			}
		}
		if err != nil {
			return sums, err
		}
	}
	return sums, nil
}

// taggedLinks yields all links of an account that have tags, some at a time. It reads the next ones meanwhile.
func (s *Shortener) taggedLinks(ctx context.Context, accountID int64) iter.Seq2[[]schema.TaggedLink, error] {
	type chunk struct {
		links []schema.TaggedLink
		err   error
	}
	return func(yield func([]schema.TaggedLink, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		chunks := make(chan chunk)
		go func() {
			defer close(chunks)
			for last := int64(0); ; {
				links, err := s.links.TaggedLinks(ctx, accountID, last, tagChunk)
				if err == nil && len(links) == 0 {
					return
				}
				if len(links) > 0 {
					last = links[len(links)-1].Ordinal
				}
				chunks <- chunk{links, err} // the receiver owns the links then
				if err != nil || ctx.Err() != nil {
					return
				}
			}
		}()
		defer func() { // the reader ends with its next chunk
			cancel()
			for range chunks {
			}
		}()
		for c := range chunks {
			if !yield(c.links, c.err) {
				return
			}
		}
	}
}

// FieldNewTag names the new tag in the errors of RenameTag.
const FieldNewTag = "new_tag"

// RenameTag gives all links of an account that have a tag another one instead, and returns how many these are. A link
// that has both keeps the other one. CodeInvalid if either is no tag.
func (s *Shortener) RenameTag(ctx context.Context, accountID int64, from, to string) (links int64, err error) {
	v := newValidation(nil)
	v.tag("tag", from)
	v.tag(FieldNewTag, to)
	if v.invalid[FieldNewTag] == nil && from == to {
		v.reject(FieldNewTag, "The new name must be different.")
	}
	if err := v.outcome(); err != nil {
		return 0, err
	}
	return s.links.RenameTag(ctx, accountID, from, to, currentTime())
}

// DeleteTag removes a tag from all links of an account and returns how many had it. CodeInvalid if it is no tag.
func (s *Shortener) DeleteTag(ctx context.Context, accountID int64, tag string) (links int64, err error) {
	v := newValidation(nil)
	v.tag("tag", tag)
	if err := v.outcome(); err != nil {
		return 0, err
	}
	return s.links.RenameTag(ctx, accountID, tag, "", currentTime())
}

// BadTag says which tags are valid.
const BadTag = "A tag has 1 to 32 characters of a-z, 0-9, _ and -."

func (v *validation) tag(field, tag string) {
	if !schema.ValidTag(tag) {
		v.reject(field, BadTag)
	}
}
