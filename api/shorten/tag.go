package shorten

import (
	"context"
	"maps"
	"slices"
	"time"

	"linkstream/schema"
)

// TagCount counts the links with a tag and their clicks.
type TagCount struct {
	Tag           string
	Links, Clicks int64
}

// MaxTagCounts bounds the tags of one answer, because an account may have ten of its own on each link.
const MaxTagCounts = 10_000

// Tags returns the first MaxTagCounts tags of an account's links by name, of those after a tag; "" begins with the first one. more says
// that others follow. The cost is proportional to the number of the account's links, what is in memory is not. Clicks are 0 if clicks
// is nil. CodeInvalid if after is neither empty nor a tag.
func (s *Shortener) Tags(ctx context.Context, clicks clickCounter, accountID int64, after string) (tags []TagCount, more bool, err error) {
	if v := newValidation(nil); after != "" {
		v.tag(FieldAfter, after)
		if err := v.outcome(); err != nil {
			return nil, false, err
		}
	}
	counts := tagCounts{after: after, byTag: map[string]*TagCount{}}
	for last := int64(0); ; {
		links, err := s.links.LinksAfter(ctx, accountID, last, countChunk)
		if err != nil {
			return nil, false, err
		}
		if len(links) == 0 {
			break
		}
		last = links[len(links)-1].Ordinal
		if err := counts.add(ctx, clicks, links); err != nil {
			return nil, false, err
		}
	}
	names := slices.Sorted(maps.Keys(counts.byTag))
	more = len(names) > MaxTagCounts
	for _, name := range names[:min(len(names), MaxTagCounts)] {
		tags = append(tags, *counts.byTag[name])
	}
	return tags, more, nil
}

// FieldAfter names the tag after which Tags begins in its errors.
const FieldAfter = "after"

// tagCounts counts tags. Of too many it keeps those that come first.
type tagCounts struct {
	after, last string // tags up to after are not counted, nor those behind last; "" for last: none is too far behind
	byTag       map[string]*TagCount
}

func (c *tagCounts) counts(tag string) bool { return tag > c.after && (c.last == "" || tag <= c.last) }

func (c *tagCounts) add(ctx context.Context, clicks clickCounter, links []schema.Link) error {
	var ids []int64
	for _, link := range links {
		if slices.ContainsFunc(link.Tags, c.counts) {
			ids = append(ids, link.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	var totals map[int64]int64
	if clicks != nil {
		var err error
		if totals, err = clicks.ClickCounts(ctx, ids); err != nil {
			return err
		}
	}
	for _, link := range links {
		for _, tag := range link.Tags {
			if !c.counts(tag) {
				continue
			}
			if c.byTag[tag] == nil {
				c.byTag[tag] = &TagCount{Tag: tag}
			}
			c.byTag[tag].Links++
			c.byTag[tag].Clicks += totals[link.ID]
		}
	}
	c.shrink()
	return nil
}

// shrink drops the tags behind the first ones and one more. Those that are dropped are never among the first ones again.
func (c *tagCounts) shrink() {
	const keep = MaxTagCounts + 1
	if len(c.byTag) < 2*keep {
		return
	}
	names := slices.Sorted(maps.Keys(c.byTag))
	c.last = names[keep-1]
	for _, name := range names[keep:] {
		delete(c.byTag, name)
	}
}

// FieldNewTag names the new tag in the errors of RenameTag.
const FieldNewTag = "new_tag"

// RenameTag gives all links of an account that have a tag another one instead, and returns how many these are. A link that has both
// keeps the other one. CodeInvalid if either is no tag.
func (s *Shortener) RenameTag(ctx context.Context, accountID int64, from, to string) (links int64, err error) {
	v := newValidation(nil)
	v.tag("tag", from)
	v.tag(FieldNewTag, to)
	if v.invalid[FieldNewTag] == nil && from == to {
		v.reject(FieldNewTag, "The new tag must be another one.")
	}
	if err := v.outcome(); err != nil {
		return 0, err
	}
	return s.links.RenameTag(ctx, accountID, from, to, time.Now().UTC().Truncate(time.Second))
}

// DeleteTag removes a tag from all links of an account and returns how many had it. CodeInvalid if it is no tag.
func (s *Shortener) DeleteTag(ctx context.Context, accountID int64, tag string) (links int64, err error) {
	v := newValidation(nil)
	v.tag("tag", tag)
	if err := v.outcome(); err != nil {
		return 0, err
	}
	return s.links.RenameTag(ctx, accountID, tag, "", time.Now().UTC().Truncate(time.Second))
}

func (v *validation) tag(field, tag string) {
	if !schema.ValidTag(tag) {
		v.reject(field, "A tag has 1 to 32 characters of a-z, 0-9, _ and -.")
	}
}
