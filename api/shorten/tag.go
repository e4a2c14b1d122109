package shorten

import (
	"context"
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

// FieldAfter names the tag after which Tags begins in its errors.
const FieldAfter = "after"

// Tags returns the first MaxTagCounts tags of an account's links by name, of those after a tag; "" begins with the first one. more says
// that others follow. The tags have no clicks: see CountClicks. The cost is proportional to the number of the account's links.
// CodeInvalid if after is neither empty nor a tag.
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

// CountClicks adds the clicks of an account's links to their tags, among those given. It reads all links that have tags, some at a time,
// and costs many times as much as Tags. After an error some clicks are missing.
func (s *Shortener) CountClicks(ctx context.Context, clicks clickCounter, accountID int64, tags []TagCount) error {
	if len(tags) == 0 {
		return nil
	}
	byTag := make(map[string]*TagCount, len(tags))
	for i := range tags {
		byTag[tags[i].Tag] = &tags[i]
	}
	for last := int64(0); ; {
		links, err := s.links.TaggedLinks(ctx, accountID, last, countChunk)
		if err != nil || len(links) == 0 {
			return err
		}
		last = links[len(links)-1].Ordinal
		links = slices.DeleteFunc(links, func(link schema.TaggedLink) bool {
			return !slices.ContainsFunc(link.Tags, func(tag string) bool { return byTag[tag] != nil })
		})
		if err := addClicksOf(ctx, clicks, links, byTag); err != nil {
			return err
		}
	}
}

func addClicksOf(ctx context.Context, clicks clickCounter, links []schema.TaggedLink, byTag map[string]*TagCount) error {
	if len(links) == 0 {
		return nil
	}
	ids := make([]int64, len(links))
	for i, link := range links {
		ids[i] = link.ID
	}
	totals, err := clicks.ClickCounts(ctx, ids)
	for _, link := range links {
		for _, tag := range link.Tags {
			if count := byTag[tag]; count != nil {
				count.Clicks += totals[link.ID]
			}
		}
	}
	return err
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
