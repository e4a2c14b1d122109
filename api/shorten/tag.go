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

// Tags returns the tags of an account's links, by name. The cost is proportional to the number of the account's links. Clicks are 0 if
// clicks is nil.
func (s *Shortener) Tags(ctx context.Context, clicks clickCounter, accountID int64) ([]TagCount, error) {
	counts := map[string]*TagCount{}
	for after := int64(0); ; {
		links, err := s.links.LinksAfter(ctx, accountID, after, countChunk)
		if err != nil {
			return nil, err
		}
		if len(links) == 0 {
			break
		}
		after = links[len(links)-1].Ordinal
		if err := countTags(ctx, clicks, links, counts); err != nil {
			return nil, err
		}
	}
	tags := make([]TagCount, 0, len(counts))
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		tags = append(tags, *counts[name])
	}
	return tags, nil
}

func countTags(ctx context.Context, clicks clickCounter, links []schema.Link, counts map[string]*TagCount) error {
	var ids []int64
	for _, link := range links {
		if len(link.Tags) > 0 {
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
			if counts[tag] == nil {
				counts[tag] = &TagCount{Tag: tag}
			}
			counts[tag].Links++
			counts[tag].Clicks += totals[link.ID]
		}
	}
	return nil
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
